//! The review command of the page, to be copied: a file cannot start a server.

use super::escape::escape;

pub(super) fn html(command: &str) -> String {
    format!(
        "<div class=\"review\"><p>To review these candidates, run this where the report was made:</p>\n\
         <div><pre><code id=\"review-command\">{}</code></pre>\
         <button type=\"button\" id=\"copy\" hidden>Copy</button></div>\n\
         <p class=\"muted\">To rescore candidates after each decision, also pass the features and candidates that this \
         relevance was computed from.</p></div>\n",
        escape(command)
    )
}
