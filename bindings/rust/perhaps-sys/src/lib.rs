//! The functions of `perhaps.h`, as it declares them. The crate `perhaps` is what programs use.
#![allow(non_camel_case_types)]
use std::os::raw::{c_char, c_int, c_void};

pub type perhaps_status = c_int;
pub const PERHAPS_OK: perhaps_status = 0;
pub const PERHAPS_TRUNCATED: perhaps_status = 1;
pub const PERHAPS_BAD_MAGIC: perhaps_status = 2;
pub const PERHAPS_BAD_VERSION: perhaps_status = 3;
pub const PERHAPS_BAD_CHECKSUM: perhaps_status = 4;
pub const PERHAPS_BAD_PARAMETER: perhaps_status = 5;
pub const PERHAPS_BAD_KEY: perhaps_status = 6;
pub const PERHAPS_MISMATCH: perhaps_status = 7;
pub const PERHAPS_FULL: perhaps_status = 8;
pub const PERHAPS_UNSUPPORTED: perhaps_status = 9;
pub const PERHAPS_IO: perhaps_status = 10;
pub const PERHAPS_NO_MEMORY: perhaps_status = 11;
pub const PERHAPS_TOO_SMALL: perhaps_status = 12;
pub const PERHAPS_INTERNAL: perhaps_status = 13;

pub const PERHAPS_BORROW: u32 = 1;
pub const PERHAPS_NO_VERIFY: u32 = 2;

#[repr(C)]
pub struct perhaps_filter {
    _opaque: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct perhaps_key {
    pub data: *const c_void,
    pub size: usize,
}

#[repr(C)]
pub struct perhaps_options {
    pub size: usize,
    pub family: *const c_char,
    pub keys: u64,
    pub fpr: f64,
    pub bits_per_key: f64,
    pub max_bytes: u64,
    pub guard_bits: u32,
    pub arity: u32,
    pub seed: *const u64,
    pub secret: *const u8,
    pub threads: u32,
    pub reserved: u32,
    pub format: *const c_char,
    pub parameters: *const c_char,
}

#[repr(C)]
pub struct perhaps_open_options {
    pub size: usize,
    pub flags: u32,
    pub reserved: u32,
    pub secret: *const u8,
    pub format: *const c_char,
    pub parameters: *const c_char,
    pub file_name: *const c_char,
}

#[repr(C)]
pub struct perhaps_erased {
    pub size: usize,
    pub removed: u64,
    pub absent: u64,
    pub kept: u64,
}

#[repr(C)]
pub struct perhaps_description {
    pub size: usize,
    pub format: [c_char; 32],
    pub family: [c_char; 32],
    pub hash: [c_char; 32],
    pub bytes: u64,
    pub bits: u64,
    pub probes: u64,
    pub keys: u64,
    pub capacity: u64,
    pub keys_estimated: f64,
    pub fill: f64,
    pub fpr: f64,
    pub fpr_at_capacity: f64,
    pub read_only: u32,
    pub reserved: u32,
}

#[repr(C)]
pub struct perhaps_sizes {
    pub size: usize,
    pub bytes: u64,
    pub bits: u64,
    pub probes: u64,
    pub fpr: f64,
}

#[repr(C)]
pub struct perhaps_entry {
    pub size: usize,
    pub name: *const c_char,
    pub summary: *const c_char,
    pub inserts: u32,
    pub erases: u32,
    pub merges: u32,
    pub builds: u32,
}

extern "C" {
    pub fn perhaps_version() -> *const c_char;
    pub fn perhaps_last_error() -> *const c_char;
    pub fn perhaps_new(options: *const perhaps_options, filter: *mut *mut perhaps_filter) -> perhaps_status;
    pub fn perhaps_build(
        options: *const perhaps_options,
        keys: *const perhaps_key,
        count: usize,
        filter: *mut *mut perhaps_filter,
    ) -> perhaps_status;
    pub fn perhaps_build_integers(
        options: *const perhaps_options,
        integers: *const u64,
        count: usize,
        filter: *mut *mut perhaps_filter,
    ) -> perhaps_status;
    pub fn perhaps_open(
        path: *const c_char,
        options: *const perhaps_open_options,
        filter: *mut *mut perhaps_filter,
    ) -> perhaps_status;
    pub fn perhaps_from_bytes(
        bytes: *const c_void,
        size: usize,
        options: *const perhaps_open_options,
        filter: *mut *mut perhaps_filter,
    ) -> perhaps_status;
    pub fn perhaps_copy(filter: *const perhaps_filter, copy: *mut *mut perhaps_filter) -> perhaps_status;
    pub fn perhaps_insert(
        filter: *mut perhaps_filter,
        keys: *const perhaps_key,
        count: usize,
        inserted: *mut usize,
    ) -> perhaps_status;
    pub fn perhaps_insert_integers(
        filter: *mut perhaps_filter,
        integers: *const u64,
        count: usize,
        inserted: *mut usize,
    ) -> perhaps_status;
    pub fn perhaps_query(
        filter: *const perhaps_filter,
        keys: *const perhaps_key,
        count: usize,
        answers: *mut u64,
    ) -> perhaps_status;
    pub fn perhaps_query_integers(
        filter: *const perhaps_filter,
        integers: *const u64,
        count: usize,
        answers: *mut u64,
    ) -> perhaps_status;
    pub fn perhaps_erase(
        filter: *mut perhaps_filter,
        keys: *const perhaps_key,
        count: usize,
        erased: *mut perhaps_erased,
    ) -> perhaps_status;
    pub fn perhaps_erase_integers(
        filter: *mut perhaps_filter,
        integers: *const u64,
        count: usize,
        erased: *mut perhaps_erased,
    ) -> perhaps_status;
    pub fn perhaps_merge(filter: *mut perhaps_filter, other: *const perhaps_filter) -> perhaps_status;
    pub fn perhaps_intersect(filter: *mut perhaps_filter, other: *const perhaps_filter) -> perhaps_status;
    pub fn perhaps_save(filter: *const perhaps_filter, path: *const c_char) -> perhaps_status;
    pub fn perhaps_to_bytes(
        filter: *const perhaps_filter,
        buffer: *mut c_void,
        capacity: usize,
        size: *mut usize,
    ) -> perhaps_status;
    pub fn perhaps_byte_size(filter: *const perhaps_filter) -> u64;
    pub fn perhaps_describe(filter: *const perhaps_filter, description: *mut perhaps_description) -> perhaps_status;
    pub fn perhaps_size_of(options: *const perhaps_options, sizes: *mut perhaps_sizes) -> perhaps_status;
    pub fn perhaps_family_at(index: usize, entry: *mut perhaps_entry) -> c_int;
    pub fn perhaps_format_at(index: usize, entry: *mut perhaps_entry) -> c_int;
    pub fn perhaps_free(filter: *mut perhaps_filter);
}

// Would notice: a struct that differs from perhaps.h.
#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;
    use std::mem::{size_of, zeroed};

    #[test]
    fn sizes_and_entries() {
        unsafe {
            let (mut options, mut sizes): (perhaps_options, perhaps_sizes) = (zeroed(), zeroed());
            options.size = size_of::<perhaps_options>();
            options.keys = 1_000_000;
            sizes.size = size_of::<perhaps_sizes>();
            assert_eq!(perhaps_size_of(&options, &mut sizes), PERHAPS_OK);
            assert_eq!((sizes.bits, sizes.probes), (sizes.bytes * 8, 8));
            assert!((0.009..0.01).contains(&sizes.fpr));

            let mut entry: perhaps_entry = zeroed();
            entry.size = size_of::<perhaps_entry>();
            let mut names = Vec::new();
            while perhaps_family_at(names.len(), &mut entry) == 1 {
                assert!(!CStr::from_ptr(entry.summary).to_bytes().is_empty());
                names.push(CStr::from_ptr(entry.name).to_str().unwrap());
                let name = names[names.len() - 1];
                assert_eq!(entry.inserts == 1, !["fuse", "ribbon"].contains(&name), "{name}");
                assert_eq!(entry.erases == 1, ["counting", "cuckoo", "quotient", "growing"].contains(&name), "{name}");
                assert_eq!(entry.builds, 1);
            }
            assert_eq!(names[0], "line");
            assert_eq!(perhaps_format_at(1 << 20, &mut entry), 0);
            assert_eq!(perhaps_format_at(0, &mut entry), 1);
        }
    }
}
