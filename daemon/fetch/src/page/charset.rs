//! Bytes to text: by the byte order mark, the header, the page's own declaration, or else UTF-8 or Windows-1252.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Bytes in which a page must declare its encoding, by the HTML standard.
const DECLARATION_BYTES: usize = 1024;

pub fn decode_text(content_type: Option<&str>, body: &[u8]) -> String {
    let encoding = header_charset(content_type)
        .or_else(|| declared(body))
        .unwrap_or_else(|| if std::str::from_utf8(body).is_ok() { UTF_8 } else { WINDOWS_1252 });
    // A byte order mark has precedence over `encoding`.
    let (text, _, _) = encoding.decode(body);
    text.into_owned()
}

fn header_charset(content_type: Option<&str>) -> Option<&'static Encoding> {
    let parameters = content_type?.split(';').skip(1);
    let charset = parameters
        .filter_map(|part| part.split_once('='))
        .find(|(name, _)| name.trim().eq_ignore_ascii_case("charset"));
    Encoding::for_label(charset?.1.trim().trim_matches('"').as_bytes())
}

/// Finds `<meta charset=…>`, its older form, or the `encoding` of an XML declaration.
fn declared(body: &[u8]) -> Option<&'static Encoding> {
    let head = String::from_utf8_lossy(&body[..body.len().min(DECLARATION_BYTES)]).to_ascii_lowercase();
    let in_meta = head.split("<meta").skip(1).filter_map(|tag| label_after(tag.split('>').next()?, "charset"));
    let in_xml = head.starts_with("<?xml").then(|| label_after(head.split("?>").next()?, "encoding")).flatten();
    let found = in_meta.chain(in_xml).find_map(|label| Encoding::for_label(label.as_bytes()))?;
    // ASCII was readable, so it is not UTF-16, whatever the page declares.
    Some(if found.is_ascii_compatible() { found } else { UTF_8 })
}

fn label_after(tag: &str, name: &str) -> Option<String> {
    let after = tag.split_once(name)?.1.trim_start().strip_prefix('=')?;
    let value = after.trim_start().trim_start_matches(['"', '\'']);
    Some(value.chars().take_while(|c| c.is_ascii_alphanumeric() || "-_:.".contains(*c)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_encoding_is_found_in_its_order() {
        let latin = b"caf\xe9";
        let shift_jis = b"<meta charset=Shift_JIS>\x93\xfa\x96\x7b";
        let gbk = b"<meta http-equiv=content-type content=\"text/html; charset=gb2312\">\xd6\xd0";
        for (content_type, body, expected) in [
            (None, &b"caf\xc3\xa9"[..], "café"),
            (None, latin, "café"),
            (Some("text/html; charset=ISO-8859-1"), latin, "café"),
            (Some("text/html; Charset=\"utf-8\""), b"caf\xc3\xa9", "café"),
            (Some("text/html; charset=nonsense"), latin, "café"),
            (Some("text/html"), shift_jis, "<meta charset=Shift_JIS>日本"),
            (None, gbk, "<meta http-equiv=content-type content=\"text/html; charset=gb2312\">中"),
            (None, b"\xff\xfeh\0i\0", "hi"),
            (Some("text/html; charset=utf-8"), b"\xff\xfeh\0i\0", "hi"),
            (None, b"\xef\xbb\xbfhi", "hi"),
            (None, b"<?xml version='1.0' encoding='iso-8859-1'?>\xe9", "<?xml version='1.0' encoding='iso-8859-1'?>é"),
            (None, b"<meta charset=utf-16>caf\xc3\xa9", "<meta charset=utf-16>café"),
        ] {
            assert_eq!(decode_text(content_type, body), expected, "{content_type:?} {body:?}");
        }
    }
}
