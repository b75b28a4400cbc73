#![doc = include_str!("../README.md")]
#![warn(missing_docs)]
use perhaps_sys as sys;
use std::ffi::{CStr, CString};
use std::fmt;
use std::os::raw::c_char;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// What kind of failure it was. Others may be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Truncated, damaged, foreign or newer bytes.
    Damaged,
    /// A number outside its range, or an unknown name.
    BadParameter,
    /// A keyed filter without its secret, or with another one.
    BadKey,
    /// Two filters that cannot be combined.
    Mismatch,
    /// No room for another key.
    Full,
    /// Not something that this filter can do.
    Unsupported,
    /// The operating system reported an error.
    Io,
    /// Not enough memory.
    NoMemory,
    /// A defect of the library.
    Internal,
}

/// What failed, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    text: String,
}

impl Error {
    /// What kind of failure it was.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

/// A value, or why there is none.
pub type Result<T> = std::result::Result<T, Error>;

fn check(status: sys::perhaps_status) -> Result<()> {
    let kind = match status {
        sys::PERHAPS_OK => return Ok(()),
        sys::PERHAPS_TRUNCATED | sys::PERHAPS_BAD_MAGIC | sys::PERHAPS_BAD_VERSION | sys::PERHAPS_BAD_CHECKSUM => {
            ErrorKind::Damaged
        }
        sys::PERHAPS_BAD_PARAMETER => ErrorKind::BadParameter,
        sys::PERHAPS_BAD_KEY => ErrorKind::BadKey,
        sys::PERHAPS_MISMATCH => ErrorKind::Mismatch,
        sys::PERHAPS_FULL => ErrorKind::Full,
        sys::PERHAPS_UNSUPPORTED => ErrorKind::Unsupported,
        sys::PERHAPS_IO => ErrorKind::Io,
        sys::PERHAPS_NO_MEMORY => ErrorKind::NoMemory,
        _ => ErrorKind::Internal,
    };
    // SAFETY: the text is the thread's own, ends in a NUL, and is copied before the next call.
    let text = unsafe { CStr::from_ptr(sys::perhaps_last_error()) };
    Err(Error { kind, text: text.to_string_lossy().into_owned() })
}

fn c_string(text: impl Into<Vec<u8>>) -> Result<CString> {
    CString::new(text).map_err(|_| Error { kind: ErrorKind::BadParameter, text: "a name contains a NUL".to_string() })
}

fn or_null(text: Option<&CString>) -> *const c_char {
    text.map_or(ptr::null(), |t| t.as_ptr())
}

// Borrows without saying so: what it is made of must outlive the call that it is made for.
fn key_of(bytes: &[u8]) -> sys::perhaps_key {
    sys::perhaps_key { data: bytes.as_ptr().cast(), size: bytes.len() }
}

fn keys_of<K: AsRef<[u8]>>(keys: &[K]) -> Vec<sys::perhaps_key> {
    keys.iter().map(|key| key_of(key.as_ref())).collect()
}

/// The version of the library.
pub fn version() -> &'static str {
    // SAFETY: a constant of the library, which ends in a NUL.
    unsafe { CStr::from_ptr(sys::perhaps_version()) }.to_str().unwrap_or("unknown")
}

// Not for logs.
#[derive(Clone)]
struct Secret([u8; 16]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

/// What kind of filter is made.
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct Options {
    family: Option<String>,
    keys: u64,
    fpr: f64,
    bits_per_key: f64,
    max_bytes: u64,
    guard_bits: u32,
    arity: u32,
    seed: Option<u64>,
    secret: Option<Secret>,
    threads: u32,
    format: Option<String>,
    parameters: Option<String>,
}

impl Options {
    /// A line filter at 1 %.
    pub fn new() -> Self {
        Self::default()
    }
    /// "line", "ribbon" and so on.
    pub fn family(mut self, name: &str) -> Self {
        self.family = Some(name.to_string());
        self
    }
    /// How many keys are expected.
    pub fn keys(mut self, count: u64) -> Self {
        self.keys = count;
        self
    }
    /// The rate of false positives after that many.
    pub fn fpr(mut self, rate: f64) -> Self {
        self.fpr = rate;
        self
    }
    /// Instead of a rate.
    pub fn bits_per_key(mut self, bits: f64) -> Self {
        self.bits_per_key = bits;
        self
    }
    /// Instead of a rate.
    pub fn max_bytes(mut self, bytes: u64) -> Self {
        self.max_bytes = bytes;
        self
    }
    /// Of families that erase: fewer erases that remove another key.
    pub fn guard_bits(mut self, bits: u32) -> Self {
        self.guard_bits = bits;
        self
    }
    /// Of "fuse": 3 or 4.
    pub fn arity(mut self, arity: u32) -> Self {
        self.arity = arity;
        self
    }
    /// Of the hash.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }
    /// Keys the hash, for keys that others choose.
    pub fn secret(mut self, secret: [u8; 16]) -> Self {
        self.secret = Some(Secret(secret));
        self
    }
    /// How many threads `build` uses.
    pub fn threads(mut self, threads: u32) -> Self {
        self.threads = threads;
        self
    }
    /// `build` makes the file of another system; `parameters` is "name=value name=value".
    pub fn format(mut self, name: &str, parameters: &str) -> Self {
        self.format = Some(name.to_string());
        self.parameters = Some(parameters.to_string());
        self
    }

    // What the options point to lives as long as the call.
    fn with<T>(&self, call: impl FnOnce(&sys::perhaps_options) -> Result<T>) -> Result<T> {
        let text = |from: &Option<String>| from.as_deref().map(c_string).transpose();
        let (family, format, parameters) = (text(&self.family)?, text(&self.format)?, text(&self.parameters)?);
        call(&sys::perhaps_options {
            size: std::mem::size_of::<sys::perhaps_options>(),
            family: or_null(family.as_ref()),
            keys: self.keys,
            fpr: self.fpr,
            bits_per_key: self.bits_per_key,
            max_bytes: self.max_bytes,
            guard_bits: self.guard_bits,
            arity: self.arity,
            seed: self.seed.as_ref().map_or(ptr::null(), |s| s),
            secret: self.secret.as_ref().map_or(ptr::null(), |s| s.0.as_ptr()),
            threads: self.threads,
            reserved: 0,
            format: or_null(format.as_ref()),
            parameters: or_null(parameters.as_ref()),
        })
    }

    /// An empty filter.
    pub fn create(&self) -> Result<Filter> {
        // SAFETY: `with` keeps the options.
        self.with(|options| Filter::made(|filter| unsafe { sys::perhaps_new(options, filter) }))
    }
    /// A filter of all these keys; of a static family such as "ribbon" it can only be made so.
    pub fn build<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Filter> {
        let keys = keys_of(keys);
        self.with(|options| {
            // SAFETY: `with` keeps the options, and the caller's slice is borrowed, so the keys' bytes stay.
            Filter::made(|filter| unsafe { sys::perhaps_build(options, keys.as_ptr(), keys.len(), filter) })
        })
    }
    /// The same of numbers, which are other keys than their text or bytes.
    pub fn build_integers(&self, integers: &[u64]) -> Result<Filter> {
        self.with(|options| {
            // SAFETY: as in `build`.
            Filter::made(|filter| unsafe {
                sys::perhaps_build_integers(options, integers.as_ptr(), integers.len(), filter)
            })
        })
    }
}

/// How a file is read.
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct Reading {
    secret: Option<Secret>,
    format: Option<String>,
    parameters: Option<String>,
    file_name: Option<String>,
}

impl Reading {
    /// A file of ours, or one that is recognised.
    pub fn new() -> Self {
        Self::default()
    }
    /// Of a keyed filter.
    pub fn secret(mut self, secret: [u8; 16]) -> Self {
        self.secret = Some(Secret(secret));
        self
    }
    /// Of another system.
    pub fn format(mut self, name: &str) -> Self {
        self.format = Some(name.to_string());
        self
    }
    /// "name=value name=value", for formats whose bytes do not tell.
    pub fn parameters(mut self, text: &str) -> Self {
        self.parameters = Some(text.to_string());
        self
    }
    /// For `read`: some formats are recognised by it only.
    pub fn file_name(mut self, name: &str) -> Self {
        self.file_name = Some(name.to_string());
        self
    }

    // What the options point to lives as long as the call.
    fn with<T>(&self, call: impl FnOnce(&sys::perhaps_open_options) -> Result<T>) -> Result<T> {
        let text = |from: &Option<String>| from.as_deref().map(c_string).transpose();
        let (format, parameters, file_name) = (text(&self.format)?, text(&self.parameters)?, text(&self.file_name)?);
        call(&sys::perhaps_open_options {
            size: std::mem::size_of::<sys::perhaps_open_options>(),
            flags: 0,
            reserved: 0,
            secret: self.secret.as_ref().map_or(ptr::null(), |s| s.0.as_ptr()),
            format: or_null(format.as_ref()),
            parameters: or_null(parameters.as_ref()),
            file_name: or_null(file_name.as_ref()),
        })
    }

    /// Maps a file. The filter is read-only; `try_clone` makes one that can be changed. While it is open, the file may
    /// be replaced by renaming another one over it; a program that truncates it kills this one (SIGBUS).
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Filter> {
        let path = c_string(path.as_ref().as_os_str().as_bytes())?;
        // SAFETY: `with` keeps the options, and the path ends in a NUL.
        self.with(|options| Filter::made(|filter| unsafe { sys::perhaps_open(path.as_ptr(), options, filter) }))
    }
    /// A copy of the bytes of a file.
    pub fn read(&self, bytes: &[u8]) -> Result<Filter> {
        self.with(|options| {
            // SAFETY: `with` keeps the options; without PERHAPS_BORROW the bytes are copied.
            Filter::made(|filter| unsafe {
                sys::perhaps_from_bytes(bytes.as_ptr().cast(), bytes.len(), options, filter)
            })
        })
    }
}

/// How many keys were erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Erased.
    pub removed: u64,
    /// Not in the filter.
    pub absent: u64,
    /// Erased, but a full counter still answers *perhaps*.
    pub kept: u64,
}

fn erased(erase: impl FnOnce(&mut sys::perhaps_erased) -> sys::perhaps_status) -> Result<Erased> {
    let size = std::mem::size_of::<sys::perhaps_erased>();
    let mut counts = sys::perhaps_erased { size, removed: 0, absent: 0, kept: 0 };
    check(erase(&mut counts))?;
    Ok(Erased { removed: counts.removed, absent: counts.absent, kept: counts.kept })
}

/// What a filter is, and its state.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Description {
    /// "perhaps" for our own, or the name of the other system's format.
    pub format: String,
    /// "line", "ribbon" and so on.
    pub family: String,
    /// "xxh3-64", "siphash-1-3" and so on.
    pub hash: String,
    /// Of the table.
    pub bytes: u64,
    /// Of the table.
    pub bits: u64,
    /// Per key, where that means something.
    pub probes: Option<u64>,
    /// Inserted, if that was recorded; duplicates count.
    pub keys: Option<u64>,
    /// The number of keys it was made for, if known.
    pub capacity: Option<u64>,
    /// Distinct ones, from the fill.
    pub keys_estimated: f64,
    /// Share of bits that are set.
    pub fill: f64,
    /// The rate of false positives now.
    pub fpr: f64,
    /// By the model, after `capacity` keys.
    pub fpr_at_capacity: f64,
    /// Opened or static: `try_clone` may make one that can be changed.
    pub read_only: bool,
}

/// A filter of any family, or a file of another system. Queries take `&self` and may run in many threads at once;
/// changes take `&mut self`.
pub struct Filter {
    filter: *mut sys::perhaps_filter,
}

// SAFETY: a handle belongs to no thread: perhaps.h knows thread-local state for messages only.
unsafe impl Send for Filter {}
// SAFETY: methods with `&self` call functions that take a const filter, which may run in many threads at once.
unsafe impl Sync for Filter {}

impl Drop for Filter {
    fn drop(&mut self) {
        // SAFETY: the handle is owned, and freed nowhere else.
        unsafe { sys::perhaps_free(self.filter) }
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter").field("bytes", &self.byte_size()).finish()
    }
}

// SAFETY of the calls below: `self.filter` is a handle that was made and not freed. Keys, numbers and paths are
// borrowed for the call, which keeps none of them. What is written has the room that is passed with it.
impl Filter {
    fn made(make: impl FnOnce(*mut *mut sys::perhaps_filter) -> sys::perhaps_status) -> Result<Filter> {
        let mut filter = ptr::null_mut();
        check(make(&mut filter))?;
        Ok(Filter { filter })
    }

    /// Maps a file of ours, or of another system that is recognised.
    pub fn open(path: impl AsRef<Path>) -> Result<Filter> {
        Reading::new().open(path)
    }
    /// A copy of the bytes of a file.
    pub fn from_bytes(bytes: &[u8]) -> Result<Filter> {
        Reading::new().read(bytes)
    }
    /// A copy in memory, which can be changed if the family can.
    pub fn try_clone(&self) -> Result<Filter> {
        // SAFETY: as above.
        Filter::made(|copy| unsafe { sys::perhaps_copy(self.filter, copy) })
    }

    /// False is certain. Text is hashed as its UTF-8 bytes.
    #[must_use]
    pub fn may_contain(&self, key: impl AsRef<[u8]>) -> bool {
        let mut answer = 1;
        // SAFETY: as above.
        unsafe { sys::perhaps_query(self.filter, &key_of(key.as_ref()), 1, &mut answer) };
        answer != 0
    }
    /// The same of many keys, in less time for each.
    #[must_use]
    pub fn may_contain_all<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<bool> {
        let mut result = Vec::with_capacity(keys.len());
        for batch in keys.chunks(64) {
            let mut some = [sys::perhaps_key { data: ptr::null(), size: 0 }; 64];
            for (to, key) in some.iter_mut().zip(batch) {
                *to = key_of(key.as_ref());
            }
            let mut answers = 0u64;
            // SAFETY: as above.
            unsafe { sys::perhaps_query(self.filter, some.as_ptr(), batch.len(), &mut answers) };
            result.extend((0..batch.len()).map(|i| answers >> i & 1 != 0));
        }
        result
    }
    /// The same of numbers; formats of other systems have none.
    pub fn may_contain_integers(&self, integers: &[u64]) -> Result<Vec<bool>> {
        let mut answers = vec![0u64; (integers.len() + 63) / 64];
        // SAFETY: as above; there is a bit for each number.
        check(unsafe {
            sys::perhaps_query_integers(self.filter, integers.as_ptr(), integers.len(), answers.as_mut_ptr())
        })?;
        Ok((0..integers.len()).map(|i| answers[i / 64] >> (i % 64) & 1 != 0).collect())
    }

    /// Inserts one key.
    pub fn insert(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        // SAFETY: as above.
        check(unsafe { sys::perhaps_insert(self.filter, &key_of(key.as_ref()), 1, ptr::null_mut()) })
    }
    /// Inserts many. After `ErrorKind::Full` some of them are in.
    pub fn insert_all<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<()> {
        let keys = keys_of(keys);
        // SAFETY: as above.
        check(unsafe { sys::perhaps_insert(self.filter, keys.as_ptr(), keys.len(), ptr::null_mut()) })
    }
    /// Inserts numbers. After `ErrorKind::Full` some of them are in.
    pub fn insert_integers(&mut self, integers: &[u64]) -> Result<()> {
        // SAFETY: as above.
        check(unsafe { sys::perhaps_insert_integers(self.filter, integers.as_ptr(), integers.len(), ptr::null_mut()) })
    }
    /// Erases keys that were inserted: one that was not, but looks present, takes another with it.
    pub fn erase<K: AsRef<[u8]>>(&mut self, keys: &[K]) -> Result<Erased> {
        let keys = keys_of(keys);
        // SAFETY: as above.
        erased(|to| unsafe { sys::perhaps_erase(self.filter, keys.as_ptr(), keys.len(), to) })
    }
    /// Erases numbers that were inserted.
    pub fn erase_integers(&mut self, integers: &[u64]) -> Result<Erased> {
        // SAFETY: as above.
        erased(|to| unsafe { sys::perhaps_erase_integers(self.filter, integers.as_ptr(), integers.len(), to) })
    }
    /// Becomes the filter of both key sets.
    pub fn merge(&mut self, other: &Filter) -> Result<()> {
        // SAFETY: as above.
        check(unsafe { sys::perhaps_merge(self.filter, other.filter) })
    }
    /// Becomes the filter of the keys in both, approximately.
    pub fn intersect(&mut self, other: &Filter) -> Result<()> {
        // SAFETY: as above.
        check(unsafe { sys::perhaps_intersect(self.filter, other.filter) })
    }

    /// Writes a file, whole or not at all.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = c_string(path.as_ref().as_os_str().as_bytes())?;
        // SAFETY: as above.
        check(unsafe { sys::perhaps_save(self.filter, path.as_ptr()) })
    }
    /// The bytes of that file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let mut size = 0;
        // SAFETY: as above.
        let status = unsafe { sys::perhaps_to_bytes(self.filter, ptr::null_mut(), 0, &mut size) };
        if status != sys::PERHAPS_TOO_SMALL {
            check(status)?;
        }
        let mut bytes = vec![0u8; size];
        // SAFETY: as above.
        check(unsafe { sys::perhaps_to_bytes(self.filter, bytes.as_mut_ptr().cast(), size, &mut size) })?;
        Ok(bytes)
    }
    /// What it is. Reads every bit.
    pub fn describe(&self) -> Result<Description> {
        // SAFETY: numbers and arrays of characters, for which zero is a value.
        let mut d: sys::perhaps_description = unsafe { std::mem::zeroed() };
        d.size = std::mem::size_of::<sys::perhaps_description>();
        // SAFETY: as above.
        check(unsafe { sys::perhaps_describe(self.filter, &mut d) })?;
        // SAFETY: the library ends each text with a NUL, and cuts those that are too long.
        let text = |from: &[c_char]| unsafe { CStr::from_ptr(from.as_ptr()) }.to_string_lossy().into_owned();
        let known = |number| if number == 0 { None } else { Some(number) };
        Ok(Description {
            format: text(&d.format),
            family: text(&d.family),
            hash: text(&d.hash),
            bytes: d.bytes,
            bits: d.bits,
            probes: known(d.probes),
            keys: known(d.keys),
            capacity: known(d.capacity),
            keys_estimated: d.keys_estimated,
            fill: d.fill,
            fpr: d.fpr,
            fpr_at_capacity: d.fpr_at_capacity,
            read_only: d.read_only != 0,
        })
    }
    /// Of the table, in memory.
    pub fn byte_size(&self) -> u64 {
        // SAFETY: as above.
        unsafe { sys::perhaps_byte_size(self.filter) }
    }
}
