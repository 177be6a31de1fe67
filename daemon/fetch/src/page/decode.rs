//! Decompression with a bound on what comes out.

use brotli_decompressor::Decompressor;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use ruzstd::decoding::StreamingDecoder;
use std::io::{self, Read};
use toold_proto::{ErrorKind, RpcError};

/// Encodings on top of each other. Servers use one; more only multiply the size.
const MAX_ENCODINGS: usize = 3;

/// Largest window of zstd: RFC 9659 asks this much of a client, and a frame may name terabytes.
const MAX_ZSTD_WINDOW: u64 = 8 << 20;

/// Value of `Accept-Encoding`.
pub const ACCEPTED: &str = "gzip, deflate, br, zstd";

/// Undoes the encodings of a `Content-Encoding` header.
pub fn decode(encodings: &str, body: Vec<u8>, max_bytes: u64) -> Result<Vec<u8>, RpcError> {
    let names = encodings.split(',').map(|name| name.trim().to_ascii_lowercase());
    let names: Vec<String> = names.filter(|name| !name.is_empty() && name != "identity").collect();
    if names.len() > MAX_ENCODINGS {
        return Err(broken("it has too many encodings"));
    }
    let body = names.iter().rev().try_fold(body, |body, name| decode_one(name, &body, max_bytes))?;
    if body.len() as u64 > max_bytes { Err(too_large(max_bytes)) } else { Ok(body) }
}

/// Makes the error for a page that is larger than it may be.
pub fn too_large(max_bytes: u64) -> RpcError {
    RpcError::limit("web.extract.max_bytes", format!("the page has more than {max_bytes} bytes"))
}

fn decode_one(name: &str, body: &[u8], max_bytes: u64) -> Result<Vec<u8>, RpcError> {
    match name {
        "gzip" | "x-gzip" => read_bounded(MultiGzDecoder::new(body), max_bytes),
        "deflate" if is_zlib(body) => read_bounded(ZlibDecoder::new(body), max_bytes),
        // The standard asks for zlib; some servers send the bare stream.
        "deflate" => read_bounded(DeflateDecoder::new(body), max_bytes),
        "br" => read_bounded(Decompressor::new(body, 4096), max_bytes),
        "zstd" => decode_zstd(body, max_bytes),
        other => Err(broken(&format!("its encoding `{other}` is not known"))),
    }
}

/// Decodes the frames of a zstd body: a decoder ends with its frame.
fn decode_zstd(mut body: &[u8], max_bytes: u64) -> Result<Vec<u8>, RpcError> {
    let mut decoded = Vec::new();
    while !body.is_empty() {
        let decoder = StreamingDecoder::new_with_max_window_size(&mut body, MAX_ZSTD_WINDOW);
        let decoder = decoder.map_err(|e| broken(&e.to_string()))?;
        let left = max_bytes - decoded.len() as u64;
        decoded.extend(read_bounded(decoder, left).map_err(|e| larger_as(e, max_bytes))?);
    }
    Ok(decoded)
}

/// Names the whole bound in the error of a frame that exceeds the rest of it.
fn larger_as(error: RpcError, max_bytes: u64) -> RpcError {
    if error.kind() == Some(ErrorKind::Limit) { too_large(max_bytes) } else { error }
}

fn is_zlib(body: &[u8]) -> bool {
    matches!(body, [first, second, ..] if first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)).is_multiple_of(31))
}

fn read_bounded(reader: impl Read, max_bytes: u64) -> Result<Vec<u8>, RpcError> {
    let mut decoded = Vec::new();
    let read = reader.take(max_bytes.saturating_add(1)).read_to_end(&mut decoded);
    read.map_err(|e: io::Error| broken(&e.to_string()))?;
    if decoded.len() as u64 > max_bytes { Err(too_large(max_bytes)) } else { Ok(decoded) }
}

fn broken(reason: &str) -> RpcError {
    RpcError::new(ErrorKind::Unavailable, format!("the page cannot be decompressed: {reason}"))
        .with("reason", "encoding")
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};
    use std::io::Write;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(data).expect("memory");
        encoder.finish().expect("memory")
    }

    fn zlib(data: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(data).expect("memory");
        encoder.finish().expect("memory")
    }

    fn bare_deflate(data: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(data).expect("memory");
        encoder.finish().expect("memory")
    }

    fn zstd(data: &[u8]) -> Vec<u8> {
        compress_to_vec(data, CompressionLevel::Fastest)
    }

    /// `hello hello hello hello\n` and 16 MiB of zeros, by the reference library; there is no encoder among our crates.
    const BROTLI_HELLO: &[u8] = include_bytes!("../../testdata/hello.br");
    const BROTLI_BOMB: &[u8] = include_bytes!("../../testdata/bomb.br");

    #[test]
    fn every_encoding_is_undone() {
        let text = b"hello hello hello hello\n".to_vec();
        let two_frames = [zstd(&text[..6]), zstd(&text[6..])].concat();
        for (encoding, body) in [
            ("", text.clone()),
            ("identity", text.clone()),
            ("gzip", gzip(&text)),
            ("X-GZIP", gzip(&text)),
            ("gzip", [gzip(&text[..6]), gzip(&text[6..])].concat()),
            ("deflate", zlib(&text)),
            ("deflate", bare_deflate(&text)),
            ("zstd", zstd(&text)),
            ("zstd", two_frames),
            ("br", BROTLI_HELLO.to_vec()),
            ("deflate, gzip", gzip(&zlib(&text))),
        ] {
            assert_eq!(decode(encoding, body, 1 << 20), Ok(text.clone()), "{encoding}");
        }
    }

    #[test]
    fn a_bomb_of_every_encoding_ends_at_the_bound() {
        let zeros = vec![0; 16 << 20];
        for (encoding, body) in [
            ("gzip", gzip(&zeros)),
            ("deflate", zlib(&zeros)),
            ("deflate", bare_deflate(&zeros)),
            ("zstd", zstd(&zeros)),
            ("zstd", (0..64).flat_map(|_| zstd(&zeros[..1 << 18])).collect()),
            ("br", BROTLI_BOMB.to_vec()),
            ("gzip, gzip", gzip(&gzip(&zeros))),
            ("", zeros.clone()),
        ] {
            let error = decode(encoding, body, 1 << 20).expect_err(encoding);
            assert_eq!(error.kind(), Some(ErrorKind::Limit), "{encoding}: {}", error.message);
        }
    }

    #[test]
    fn a_zstd_frame_with_a_window_of_terabytes_is_refused() {
        // Magic, a frame header with a window descriptor of the largest exponent, one empty last block.
        let frame = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xf8, 0x01, 0x00, 0x00];
        assert_eq!(decode("zstd", frame.to_vec(), 1 << 20).expect_err("a window").kind(), Some(ErrorKind::Unavailable));
    }

    #[test]
    fn damaged_and_unknown_encodings_are_errors() {
        for (encoding, body) in [
            ("gzip", &b"not gzip"[..]),
            ("br", b"\xff\xff\xff\xff"),
            ("zstd", b"xxxx"),
            ("compress", b""),
            ("gzip", &gzip(b"hello hello")[..12]),
            ("gzip,gzip,gzip,gzip", b""),
        ] {
            let error = decode(encoding, body.to_vec(), 1 << 20).expect_err(encoding);
            assert_eq!(error.kind(), Some(ErrorKind::Unavailable), "{encoding}");
        }
    }
}
