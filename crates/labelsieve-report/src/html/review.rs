//! The way from the report to the review: a command to copy, since a file cannot start a server.

use super::escape::escape;

pub(super) fn html(command: &str) -> String {
    format!(
        "<div class=\"review\"><p>To decide which of these candidates belong to their class, run where this \
         report was made:</p>\n\
         <div><pre><code id=\"review-command\">{}</code></pre>\
         <button type=\"button\" id=\"copy\" hidden>Copy</button></div>\n\
         <p class=\"muted\">The relevance follows each decision if the command names the features: <code>--clean</code>, \
         <code>--noisy</code> and <code>--candidates</code> as in <code>labelsieve clean</code>.</p></div>\n",
        escape(command)
    )
}
