// ---- the command of the review

const copyButton = document.getElementById("copy");
const command = document.getElementById("review-command");
if (copyButton) copyButton.hidden = false;
copyButton?.addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(command.textContent);
    copyButton.textContent = "Copied";
  } catch {
    getSelection().selectAllChildren(command); // ready for the keyboard's copy, where a page may not write itself
    copyButton.textContent = "Selected";
  }
});
