//! HTML to Markdown: the article of a page, or all of it where there is none.

use super::plain;
use super::{Effort, PageText};
use dom_query::Document;
use dom_smoothie::{Config, Readability, TextMode};
use url::Url;

/// Deeper pages are stripped of their tags. The parser's work grows with the square of the depth (100,000 nested
/// elements take it half a minute), and the Markdown writer is recursive. Real pages stay below 100.
const MAX_NESTING: usize = 2000;

/// Articles with fewer characters are compared with the whole page: on a list of links, the article is one entry.
const SHORT_ARTICLE_CHARS: usize = 250;

pub fn extract(html: &str, url: &str, effort: Effort) -> PageText {
    if effort == Effort::Plain || plain::nesting(html) > MAX_NESTING {
        let (title, content) = plain::strip(html);
        return PageText { title, content };
    }
    let article = article(html, url);
    match article {
        Some(article) if article.content.chars().nth(SHORT_ARTICLE_CHARS).is_some() => article,
        article => {
            let whole = whole_page(html, url);
            let article = article.unwrap_or_default();
            let title = if article.title.is_empty() { whole.title } else { article.title };
            let is_whole_better = whole.content.len() > article.content.len();
            PageText { title, content: if is_whole_better { whole.content } else { article.content } }
        }
    }
}

fn article(html: &str, url: &str) -> Option<PageText> {
    let config = Config { text_mode: TextMode::Markdown, ..Config::default() };
    let mut readability = Readability::new(html, Some(url), Some(config)).ok()?;
    let article = readability.parse().ok()?;
    Some(PageText { title: article.title, content: article.text_content.trim().to_string() })
}

fn whole_page(html: &str, url: &str) -> PageText {
    let document = Document::from(html);
    let title = document.select("title").first().text().trim().to_string();
    for name in ["script", "style", "noscript", "template", "svg"] {
        document.select(name).remove();
    }
    if let Ok(base) = Url::parse(url) {
        absolute(&document, &base, "a", "href");
        absolute(&document, &base, "img", "src");
    }
    let content = document.body().map(|body| body.md(None).trim().to_string()).unwrap_or_default();
    PageText { title, content }
}

/// Makes the addresses of elements absolute: a reader of the text has no page to resolve them against.
fn absolute(document: &Document, base: &Url, element: &str, attribute: &str) {
    for node in document.select(element).iter() {
        let address = node.attr(attribute).and_then(|address| base.join(&address).ok());
        if let Some(address) = address {
            node.set_attr(attribute, address.as_str());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extract_article(html: &str) -> PageText {
        extract(html, "https://a.test/dir/page", Effort::Article)
    }

    #[test]
    fn an_article_becomes_markdown_without_its_surroundings() {
        let paragraph = "A sentence of the article, with a comma and enough text to count. ".repeat(5);
        let html = format!(
            "<html><head><title>The title</title><style>x</style></head><body><nav><a href=/>Home</a> <a href=/b>Menu</a></nav>
            <article><h2>Part</h2><p>{paragraph}<a href='../up'>up</a> and <b>bold</b>.</p><pre><code>let x = 1;\nlet y;</code></pre>
            <ul><li>one<li>two</ul><table><tr><th>k<th>v<tr><td>a<td>1</table><p>{paragraph}</p></article>
            <script>alert('no')</script><footer>imprint</footer></body></html>"
        );
        let page = extract_article(&html);
        assert_eq!(page.title, "The title");
        let part = [
            "## Part",
            "[up](https://a.test/up) and **bold**",
            "```\nlet x = 1;\nlet y;\n```",
            "- one\n- two",
            "| k | v |\n| - | - |\n| a | 1 |",
        ];
        for part in part {
            assert!(page.content.contains(part), "{part}\nis not in\n{}", page.content);
        }
        for part in ["alert", "imprint", "Menu"] {
            assert!(!page.content.contains(part), "{part}\nis in\n{}", page.content);
        }
    }

    #[test]
    fn a_short_page_is_given_whole() {
        let html = "<!doctype html><title>Links</title><body><h1>Links</h1><ul><li><a href=a>First</a><li><a href=/b>Second</a></ul>";
        let page = extract_article(html);
        assert_eq!(page.title, "Links");
        assert_eq!(page.content, "# Links\n\n- [First](https://a.test/dir/a)\n- [Second](https://a.test/b)");
    }

    #[test]
    fn a_page_without_text_is_empty() {
        for html in ["", "<html></html>", "<!doctype html><title>T</title><script>app()</script><div id=app></div>"] {
            assert_eq!(extract_article(html).content, "", "{html}");
        }
    }

    #[test]
    fn a_page_that_is_nested_too_deeply_is_stripped() {
        let deep = format!("<title>T</title>{}deep text{}", "<div>".repeat(100_000), "</div>".repeat(100_000));
        assert_eq!(extract_article(&deep), PageText { title: "T".into(), content: "deep text".into() });
    }
}
