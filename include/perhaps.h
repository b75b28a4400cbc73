// perhaps for C, and for every language that can call C: a filter answers *perhaps* or *no*, and *no* is certain.
//
//   perhaps_options options = {sizeof options};
//   options.keys = 1000000;
//   options.fpr = 0.01;
//   perhaps_filter* seen;
//   if (perhaps_new(&options, &seen) != PERHAPS_OK) return complain(perhaps_last_error());
//   perhaps_key key = {"hello", 5};
//   uint64_t answer;
//   perhaps_insert(seen, &key, 1, NULL);
//   perhaps_query(seen, &key, 1, &answer);                  // bit 0 belongs to the first key
//   perhaps_save(seen, "seen.perhaps");
//   perhaps_free(seen);
//
// The C++ headers are in perhaps/; this is the same library, the same hash and the same files. Plain C99, and C++.
//
// Failures. Every function that can fail returns a status, and perhaps_last_error() says what happened. No exception
// leaves the library. After a failure, out parameters are unchanged unless their function says otherwise.
//
// Structs. Each begins with its own size, which the caller sets and which tells old programs from new ones: the rest of
// what the caller does not set must be zero, and zero always means the default. What a newer program asks of an older
// library is refused, not ignored.
//
// Threads. Functions that take a const filter may be called from many threads at once, also for the same filter. While
// one thread changes a filter, no other may use it. Queries do not allocate, so they cannot run out of memory.
//
// What the caller guarantees. A handle comes from perhaps_new, build, open, from_bytes or copy and was not freed;
// pointers are valid, and not null unless it is said here that they may be. None of this is checked.
#pragma once
#include <stddef.h>
#include <stdint.h>

#define PERHAPS_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

// The outcome of a call. New ones may be added.
typedef enum perhaps_status {
  PERHAPS_OK = 0,
  PERHAPS_TRUNCATED = 1,      // fewer bytes than the header promises
  PERHAPS_BAD_MAGIC = 2,      // not a file of this kind
  PERHAPS_BAD_VERSION = 3,    // newer than this library
  PERHAPS_BAD_CHECKSUM = 4,   // damaged: another checksum, or a header that contradicts itself
  PERHAPS_BAD_PARAMETER = 5,  // a number outside its range, or an unknown name
  PERHAPS_BAD_KEY = 6,        // a keyed filter without its secret, or with another one
  PERHAPS_MISMATCH = 7,       // two filters that cannot be combined
  PERHAPS_FULL = 8,           // no room for another key
  PERHAPS_UNSUPPORTED = 9,    // well-formed, but not something that this filter or this library can do
  PERHAPS_IO = 10,            // the operating system reported an error
  PERHAPS_NO_MEMORY = 11,
  PERHAPS_TOO_SMALL = 12,  // the buffer
  PERHAPS_INTERNAL = 13    // a defect of the library
} perhaps_status;

// A filter of any family, or a file of another system.
typedef struct perhaps_filter perhaps_filter;

// A key: any bytes, also none. Text is hashed as its bytes. A number is another key than its text or its bytes: the
// functions that end in _integers take those. Signed numbers are sign-extended to 64 bits, unsigned ones zero-extended.
typedef struct perhaps_key {
  const void* data;
  size_t size;
} perhaps_key;

// What kind of filter is made. REQUIRES: keys, unless the family counts them itself or another number fixes the size
typedef struct perhaps_options {
  size_t size;                  // of this struct
  const char* family;           // "line", "ribbon" ..: perhaps_family_at lists them; null: "line"
  uint64_t keys;                // expected
  double fpr;                   // the rate of false positives after `keys` keys; 0: 0.01
  double bits_per_key;          // instead of a rate
  uint64_t max_bytes;           // instead of a rate
  uint32_t guard_bits;          // families that erase: fewer erases that remove another key
  uint32_t arity;               // fuse: 3 or 4
  const uint64_t* seed;         // of the hash; null: the default
  const unsigned char* secret;  // 16 bytes, which key the hash; null: no secret
  uint32_t threads;             // perhaps_build: how many; 0: one
  uint32_t reserved;
  const char* format;      // perhaps_build: in the format of another system (perhaps_format_at); then no field above
                           // counts, but its parameters
  const char* parameters;  // "name=value name=value" of that format; null: its defaults
} perhaps_options;

enum {
  PERHAPS_BORROW = 1,    // perhaps_from_bytes: the bytes stay where they are, and outlive the filter
  PERHAPS_NO_VERIFY = 2  // do not read the whole table for its checksum
};

// How a file or its bytes are read.
typedef struct perhaps_open_options {
  size_t size;     // of this struct
  uint32_t flags;  // PERHAPS_BORROW, PERHAPS_NO_VERIFY
  uint32_t reserved;
  const unsigned char* secret;  // 16 bytes, of a keyed filter
  const char* format;           // of another system; null: recognised, or the error names the candidates
  const char* parameters;       // "name=value name=value", for formats whose bytes do not tell
  const char* file_name;        // perhaps_from_bytes: some formats are recognised by it only
} perhaps_open_options;

// What erasing did to the keys. `kept`: erased, but a saturated counter still answers *perhaps*.
typedef struct perhaps_erased {
  size_t size;  // of this struct
  uint64_t removed;
  uint64_t absent;
  uint64_t kept;
} perhaps_erased;

// What a filter is, and its state. Texts that are too long are cut.
typedef struct perhaps_description {
  size_t size;             // of this struct
  char format[32];         // "perhaps" for our own, or the name of the other system's format
  char family[32];         // "line", "ribbon" ..
  char hash[32];           // "xxh3-64", "siphash-1-3" ..
  uint64_t bytes;          // of the table
  uint64_t bits;           // of the table
  uint64_t probes;         // per key; 0 where that means nothing
  uint64_t keys;           // inserted, as recorded; duplicates count; 0: not recorded
  uint64_t capacity;       // the number of keys it was made for; 0: unknown
  double keys_estimated;   // distinct ones, from the fill
  double fill;             // share of bits that are set
  double fpr;              // the rate of false positives now
  double fpr_at_capacity;  // by the model, after `capacity` keys; 0: unknown
  uint32_t read_only;      // 1: opened, borrowed or static. perhaps_copy makes what can be changed, if the family can
  uint32_t reserved;
} perhaps_description;

// What a filter of some options would be, by the model of its family.
typedef struct perhaps_sizes {
  size_t size;  // of this struct
  uint64_t bytes;
  uint64_t bits;
  uint64_t probes;
  double fpr;
} perhaps_sizes;

// One family, or one format of another system.
typedef struct perhaps_entry {
  size_t size;  // of this struct
  const char* name;
  const char* summary;
  uint32_t inserts;  // takes keys at any time; 0: built from all of them at once
  uint32_t erases;
  uint32_t merges;
  uint32_t builds;  // perhaps_build can make it
} perhaps_entry;

// The version of the library, "0.2.0".
PERHAPS_API const char* perhaps_version(void);
// What failed last in this thread; empty before the first failure. Valid until the next failure in this thread.
PERHAPS_API const char* perhaps_last_error(void);

// Makes an empty filter of a family that inserts.
PERHAPS_API perhaps_status perhaps_new(const perhaps_options* options, perhaps_filter** filter);

// Makes a filter from all of its keys, of any family or, from bytes only, in the format of another system. Families
// that erase or are static keep each key once; `options->keys` may then be 0. What a static family makes is read-only.
PERHAPS_API perhaps_status perhaps_build(const perhaps_options* options, const perhaps_key* keys, size_t count,
                                         perhaps_filter** filter);
PERHAPS_API perhaps_status perhaps_build_integers(const perhaps_options* options, const uint64_t* integers,
                                                  size_t count, perhaps_filter** filter);

// Maps a file: ours, or another system's. The filter is read-only. `options` may be null. While it is open, replace the
// file only by renaming another one over it, as perhaps_save does: whoever truncates it kills its readers (SIGBUS).
PERHAPS_API perhaps_status perhaps_open(const char* path, const perhaps_open_options* options, perhaps_filter** filter);

// The same from the bytes of a file: copied, or with PERHAPS_BORROW where they are. A copy of a family that inserts can
// be changed; all other results are read-only. `options` may be null.
PERHAPS_API perhaps_status perhaps_from_bytes(const void* bytes, size_t size, const perhaps_open_options* options,
                                              perhaps_filter** filter);

// A copy in memory, which can be changed if the family can.
PERHAPS_API perhaps_status perhaps_copy(const perhaps_filter* filter, perhaps_filter** copy);

// Inserts keys and sets `*inserted`, which may be null, to their number. If the filter is full the status is
// PERHAPS_FULL, and only the first `*inserted` keys are in. After PERHAPS_NO_MEMORY it is unknown which keys are in.
PERHAPS_API perhaps_status perhaps_insert(perhaps_filter* filter, const perhaps_key* keys, size_t count,
                                          size_t* inserted);
PERHAPS_API perhaps_status perhaps_insert_integers(perhaps_filter* filter, const uint64_t* integers, size_t count,
                                                   size_t* inserted);

// Looks up keys: bit i % 64 of answers[i / 64] is 0 if keys[i] is certainly absent. The unused bits of the last word
// become 0. Many keys in one call are several times as fast as one call for each. Integers are PERHAPS_UNSUPPORTED for
// formats of other systems, which hash only bytes.  REQUIRES: answers has (count + 63) / 64 words
PERHAPS_API perhaps_status perhaps_query(const perhaps_filter* filter, const perhaps_key* keys, size_t count,
                                         uint64_t* answers);
PERHAPS_API perhaps_status perhaps_query_integers(const perhaps_filter* filter, const uint64_t* integers, size_t count,
                                                  uint64_t* answers);

// Erases keys, each once. A key that was never inserted but looks present takes another key with it: erase only what
// was inserted. `erased` may be null.
PERHAPS_API perhaps_status perhaps_erase(perhaps_filter* filter, const perhaps_key* keys, size_t count,
                                         perhaps_erased* erased);
PERHAPS_API perhaps_status perhaps_erase_integers(perhaps_filter* filter, const uint64_t* integers, size_t count,
                                                  perhaps_erased* erased);

// `filter` becomes the filter of both key sets, or of those in both (approximately). Family, size and hash must be the
// same; if not, the error names what differs. `other` may be the same filter, and may be read-only.
PERHAPS_API perhaps_status perhaps_merge(perhaps_filter* filter, const perhaps_filter* other);
PERHAPS_API perhaps_status perhaps_intersect(perhaps_filter* filter, const perhaps_filter* other);

// Writes our own file, or for another system's format the bytes it was opened from: whole or not at all.
PERHAPS_API perhaps_status perhaps_save(const perhaps_filter* filter, const char* path);

// The bytes of that file. Sets `*size` to their number; if `capacity` is smaller the status is PERHAPS_TOO_SMALL and
// nothing is written: `buffer` may then be null.
PERHAPS_API perhaps_status perhaps_to_bytes(const perhaps_filter* filter, void* buffer, size_t capacity, size_t* size);

// The size of the table in bytes, without reading it. perhaps_describe reads the whole table.
PERHAPS_API uint64_t perhaps_byte_size(const perhaps_filter* filter);
PERHAPS_API perhaps_status perhaps_describe(const perhaps_filter* filter, perhaps_description* description);

// What a filter of these options would need.
PERHAPS_API perhaps_status perhaps_size_of(const perhaps_options* options, perhaps_sizes* sizes);

// The families and the formats of other systems, from index 0 on. Return 1, or 0 if there is none with this index.
PERHAPS_API int perhaps_family_at(size_t index, perhaps_entry* entry);
PERHAPS_API int perhaps_format_at(size_t index, perhaps_entry* entry);

// The filter may be null.
PERHAPS_API void perhaps_free(perhaps_filter* filter);

#ifdef __cplusplus
}
#endif
