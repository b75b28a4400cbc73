//! The lab in Rust: peer write NAME FOLDER, peer read FOLDER FILE...
use perhaps::{Options, Reading};

fn lines(path: String) -> Vec<String> {
    std::fs::read_to_string(path).unwrap().lines().map(str::to_string).collect()
}

fn main() -> perhaps::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    if args[0] == "write" {
        let keys = lines(format!("{}/keys", args[2]));
        let to = |kind: &str| format!("{}/{}.{kind}", args[2], args[1]);
        Options::new().format("lab", "").build(&keys)?.save(to("lab"))?;
        for family in ["line", "ribbon"] {
            Options::new().family(family).keys(keys.len() as u64).build(&keys)?.save(to(family))?;
        }
        return Ok(());
    }
    let probes = lines(format!("{}/probes", args[1]));
    for file in &args[2..] {
        let reading = if file.ends_with(".lab") { Reading::new().format("lab") } else { Reading::new() };
        let answers = reading.open(file)?.may_contain_all(&probes);
        println!("{}", answers.iter().map(|&a| if a { '1' } else { '0' }).collect::<String>());
    }
    Ok(())
}
