//! Promise: the crate is the C API with Rust's manners: the same answers, errors as values, no memory that is not
//! freed once. Would notice: a struct that differs from perhaps.h, a key that is lost, a status that is ignored.
use perhaps::{ErrorKind, Filter, Options, Reading};
use std::os::unix::ffi::OsStrExt;

fn words(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|i| format!("{prefix} {i}")).collect()
}

#[test]
fn every_family_is_built_saved_and_read() {
    let (keys, others) = (words("key", 2000), words("other", 2000));
    for family in ["line", "block", "classic", "counting", "cuckoo", "quotient", "scalable", "ribbon", "fuse"] {
        let built = Options::new().family(family).keys(2000).fpr(0.01).threads(2).build(&keys).unwrap();
        assert!(built.may_contain_all(&keys).iter().all(|&a| a), "{family}");
        let answers = built.may_contain_all(&others);
        assert!(answers.iter().filter(|&&a| a).count() < 100, "{family}");
        for (key, &answer) in others.iter().zip(&answers) {
            assert_eq!(built.may_contain(key), answer);
        }
        let bytes = built.to_bytes().unwrap();
        let again = Filter::from_bytes(&bytes).unwrap();
        assert_eq!(again.may_contain_all(&others), answers);
        let path = std::env::temp_dir().join(format!("perhaps-rust-{}-{family}", std::process::id()));
        built.save(&path).unwrap();
        let opened = Filter::open(&path).unwrap();
        assert_eq!(opened.to_bytes().unwrap(), bytes);
        assert_eq!(opened.try_clone().unwrap().to_bytes().unwrap(), bytes);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(opened.may_contain_all(&others), answers);
    }
}

#[test]
fn changes_and_refusals() {
    let mut seen = Options::new().keys(1000).family("cuckoo").create().unwrap();
    seen.insert_all(&words("key", 500)).unwrap();
    seen.insert_integers(&[1, 2, u64::MAX]).unwrap();
    assert_eq!(seen.may_contain_integers(&[1, 3, 2, u64::MAX]).unwrap(), [true, false, true, true]);
    assert_eq!(seen.erase_integers(&[1, u64::MAX, 5]).unwrap(), perhaps::Erased { removed: 2, absent: 1, kept: 0 });
    assert_eq!(seen.may_contain_integers(&[1, 2, u64::MAX]).unwrap(), [false, true, false]);
    assert_eq!(seen.erase(&words("key", 100)).unwrap().removed, 100);
    assert_eq!(seen.insert_integers(&(0..100_000).collect::<Vec<_>>()).unwrap_err().kind(), ErrorKind::Full);

    let mut a = Options::new().keys(1000).create().unwrap();
    let mut b = Options::new().keys(1000).create().unwrap();
    a.insert("a").unwrap();
    b.insert("b").unwrap();
    a.merge(&b).unwrap();
    assert!(a.may_contain("a") && a.may_contain("b"));
    a.intersect(&b).unwrap();
    assert!(!a.may_contain("a") && a.may_contain("b"));
    let refused = a.merge(&Options::new().keys(50_000).create().unwrap()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Mismatch);
    assert!(refused.to_string().contains("line"), "{refused}");
    assert_eq!(a.erase(&["a"]).unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(Options::new().family("none").create().unwrap_err().kind(), ErrorKind::BadParameter);
    assert_eq!(Options::new().family("a\0b").create().unwrap_err().kind(), ErrorKind::BadParameter);
    assert_eq!(Filter::open("no such file").unwrap_err().kind(), ErrorKind::Io);
    assert_eq!(Options::new().keys(1 << 50).create().unwrap_err().kind(), ErrorKind::NoMemory);

    let keyed = Options::new().keys(10).secret([7; 16]).create().unwrap();
    assert!(!format!("{:?}", Options::new().secret([7; 16])).contains('7'));
    let bytes = keyed.to_bytes().unwrap();
    assert_eq!(Filter::from_bytes(&bytes).unwrap_err().kind(), ErrorKind::BadKey);
    Reading::new().secret([7; 16]).read(&bytes).unwrap();
    assert_eq!(Filter::from_bytes(&bytes[..bytes.len() - 1]).unwrap_err().kind(), ErrorKind::Damaged);
}

#[test]
fn other_systems() {
    let keys = words("key", 300);
    let guava = Options::new().format("guava", "fpp=0.001").build(&keys).unwrap();
    assert!(guava.may_contain_all(&keys).iter().all(|&a| a));
    let mut bytes = guava.to_bytes().unwrap();
    assert!(Reading::new().format("guava").read(&bytes).unwrap().may_contain(&keys[0]));
    bytes[0] = 99; // a strategy that there is not
    assert_eq!(Reading::new().format("guava").read(&bytes).unwrap_err().kind(), ErrorKind::Damaged);
    assert_eq!(Reading::new().format("none").read(&bytes).unwrap_err().kind(), ErrorKind::BadParameter);
    assert_eq!(guava.may_contain_integers(&[1]).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn descriptions_and_sizes() {
    let mut wide = Options::new().keys(1000).bits_per_key(20.0).create().unwrap();
    wide.insert_all(&words("key", 500)).unwrap();
    let d = wide.describe().unwrap();
    assert_eq!((d.format.as_str(), d.family.as_str(), d.hash.as_str()), ("perhaps", "line", "xxh3-64"));
    assert_eq!((d.keys, d.capacity, d.read_only), (Some(500), Some(1000), false));
    assert_eq!(d.bytes, wide.byte_size());
    assert!((20_000..21_000).contains(&d.bits), "{d:?}");
    assert!((450.0..550.0).contains(&d.keys_estimated), "{d:?}");
    assert!(d.fill > 0.0 && d.fpr > 0.0 && d.fpr <= d.fpr_at_capacity, "{d:?}");
    assert!(Filter::from_bytes(&wide.to_bytes().unwrap()).unwrap().describe().unwrap().fill == d.fill);
    assert!(Options::new().keys(1000).max_bytes(512).create().unwrap().byte_size() <= 512);
    assert!(Options::new().keys(9).guard_bits(2).create().is_err());
    assert!(Options::new().keys(9).arity(3).create().is_err());
    let unnamed = Reading::new().file_name("a\0b").read(&[]).unwrap_err();
    assert_eq!(unnamed.kind(), ErrorKind::BadParameter);
}

#[test]
fn filters_go_from_thread_to_thread() {
    fn is_send_and_sync<T: Send + Sync + 'static>() {}
    is_send_and_sync::<Filter>();
    is_send_and_sync::<perhaps::Error>();
}

#[test]
fn many_threads_query_one_filter() {
    let keys = words("key", 1000);
    let seen = Options::new().keys(1000).build(&keys).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(seen.may_contain_all(&keys).iter().all(|&a| a)));
        }
    });
}

#[test]
fn names_that_are_no_utf8() {
    let mut name = format!("perhaps-{}-", std::process::id()).into_bytes();
    name.push(0xff);
    let name = std::env::temp_dir().join(std::ffi::OsStr::from_bytes(&name));
    let seen = Options::new().keys(10).create().unwrap();
    seen.save(&name).unwrap();
    std::fs::metadata(&name).unwrap();
    Filter::open(&name).unwrap();
    std::fs::remove_file(&name).unwrap();
    assert_eq!(seen.save("seen\0cut").unwrap_err().kind(), ErrorKind::BadParameter);
}
