//! Writes the files of a run with the native tools into a directory: `write_stub DIR`.

fn main() -> std::io::Result<()> {
    let dir = std::path::PathBuf::from(std::env::args().nth(1).unwrap_or_else(|| "stub".into()));
    let tools = toold_tools::native();
    for file in toold_stubs::python_files(&tools).into_iter().chain(toold_stubs::javascript_files(&tools)) {
        let path = dir.join(file.path);
        std::fs::create_dir_all(path.parent().unwrap_or(&dir))?;
        std::fs::write(path, file.text)?;
    }
    Ok(())
}
