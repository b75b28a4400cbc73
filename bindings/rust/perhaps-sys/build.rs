//! Finds libperhaps: in `PERHAPS_LIB_DIR`, or by pkg-config.
use std::env;
use std::process::Command;

fn main() {
    for name in ["PERHAPS_LIB_DIR", "PKG_CONFIG_PATH"] {
        println!("cargo:rerun-if-env-changed={name}");
    }
    if let Ok(folder) = env::var("PERHAPS_LIB_DIR") {
        println!("cargo:rustc-link-search=native={folder}");
        println!("cargo:rustc-link-lib=dylib=perhaps");
        return;
    }
    let output = Command::new("pkg-config")
        .args(["--libs", "perhaps"])
        .output()
        .expect("pkg-config, or PERHAPS_LIB_DIR, is needed to find libperhaps");
    assert!(output.status.success(), "pkg-config does not know perhaps: {}", String::from_utf8_lossy(&output.stderr));
    for word in String::from_utf8_lossy(&output.stdout).split_whitespace() {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
        } else if let Some(library) = word.strip_prefix("-l") {
            println!("cargo:rustc-link-lib=dylib={library}");
        }
    }
}
