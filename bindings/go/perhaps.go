// Package perhaps answers whether a key could be in a set: no, which is certain, or perhaps.
//
// A key is a sequence of bytes. Numbers are other keys than their text or bytes: the methods whose names contain
// Integer take them.
//
// The same filters, hash and files as the C++ library has, which does all the work through its C API (perhaps.h). cgo
// finds it by pkg-config, or with CGO_CFLAGS and CGO_LDFLAGS and the tag perhaps_env.
//
// Queries may run in many goroutines at once. While one changes a filter, or closes it, no other may use it. Using a
// filter after Close panics.
package perhaps

/*
#include <perhaps.h>
#include <stdlib.h>

// C may not keep an array of Go's pointers: keys come as one run of bytes and the offsets of their ends.
static void go_keys(const char* bytes, const size_t* ends, size_t first, size_t count, perhaps_key* keys) {
  for (size_t i = 0; i < count; ++i) {
    const size_t from = first + i == 0 ? 0 : ends[first + i - 1];
    keys[i].data = bytes + from;
    keys[i].size = ends[first + i] - from;
  }
}
enum { go_batch = 1024 };

static int go_query_one(const perhaps_filter* filter, const char* bytes, size_t size) {
  const perhaps_key key = {bytes, size};
  uint64_t answer = 1;
  perhaps_query(filter, &key, 1, &answer);
  return answer != 0;
}
static perhaps_status go_query(const perhaps_filter* filter, const char* bytes, const size_t* ends, size_t count,
                               uint64_t* answers) {
  perhaps_key keys[go_batch];
  for (size_t i = 0; i < count; i += go_batch) {
    const size_t some = count - i < go_batch ? count - i : go_batch;
    go_keys(bytes, ends, i, some, keys);
    const perhaps_status status = perhaps_query(filter, keys, some, answers + i / 64);
    if (status != PERHAPS_OK) return status;
  }
  return PERHAPS_OK;
}
static perhaps_status go_insert(perhaps_filter* filter, const char* bytes, const size_t* ends, size_t count) {
  perhaps_key keys[go_batch];
  for (size_t i = 0; i < count; i += go_batch) {
    const size_t some = count - i < go_batch ? count - i : go_batch;
    go_keys(bytes, ends, i, some, keys);
    const perhaps_status status = perhaps_insert(filter, keys, some, NULL);
    if (status != PERHAPS_OK) return status;
  }
  return PERHAPS_OK;
}
static perhaps_status go_erase(perhaps_filter* filter, const char* bytes, size_t size, perhaps_erased* erased) {
  const perhaps_key key = {bytes, size};
  return perhaps_erase(filter, &key, 1, erased);
}
static perhaps_status go_build(const perhaps_options* options, const char* bytes, const size_t* ends, size_t count,
                               perhaps_filter** filter) {
  perhaps_key* keys = malloc((count == 0 ? 1 : count) * sizeof *keys);
  if (keys == NULL) return PERHAPS_NO_MEMORY;
  go_keys(bytes, ends, 0, count, keys);
  const perhaps_status status = perhaps_build(options, keys, count, filter);
  free(keys);
  return status;
}
*/
import "C"

import (
	"errors"
	"runtime"
	"strings"
	"unsafe"
)

// What kind of failure it was. The text of an error names the thing and the fact; errors.Is(err, perhaps.ErrFull) asks
// for its kind.
var (
	ErrDamaged      = errors.New("perhaps: damaged")       // truncated, damaged, foreign or newer bytes
	ErrBadParameter = errors.New("perhaps: bad parameter") // a number out of range, or an unknown name
	ErrBadKey       = errors.New("perhaps: bad key")       // a keyed filter without its secret, or with another one
	ErrMismatch     = errors.New("perhaps: mismatch")      // two filters that cannot be combined
	ErrFull         = errors.New("perhaps: full")          // no room for another key
	ErrUnsupported  = errors.New("perhaps: unsupported")   // not something that this filter can do
	ErrIO           = errors.New("perhaps: io")            // the operating system reported an error
	ErrNoMemory     = errors.New("perhaps: no memory")
	ErrInternal     = errors.New("perhaps: internal") // a defect of the library
)

type failure struct {
	kind error
	text string
}

func (f *failure) Error() string { return "perhaps: " + f.text }
func (f *failure) Unwrap() error { return f.kind }

// Calls the library in one thread, so that the message is that of the call.
func check(call func() C.perhaps_status) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	kind := ErrInternal
	switch call() {
	case C.PERHAPS_OK:
		return nil
	case C.PERHAPS_TRUNCATED, C.PERHAPS_BAD_MAGIC, C.PERHAPS_BAD_VERSION, C.PERHAPS_BAD_CHECKSUM:
		kind = ErrDamaged
	case C.PERHAPS_BAD_PARAMETER:
		kind = ErrBadParameter
	case C.PERHAPS_BAD_KEY:
		kind = ErrBadKey
	case C.PERHAPS_MISMATCH:
		kind = ErrMismatch
	case C.PERHAPS_FULL:
		kind = ErrFull
	case C.PERHAPS_UNSUPPORTED:
		kind = ErrUnsupported
	case C.PERHAPS_IO:
		kind = ErrIO
	case C.PERHAPS_NO_MEMORY:
		return &failure{ErrNoMemory, "not enough memory"}
	}
	return &failure{kind, C.GoString(C.perhaps_last_error())}
}

// Options say what kind of filter is made. Zero is the default: a line filter at 1 %.
type Options struct {
	Family     string  // "line", "ribbon" and so on
	Keys       uint64  // expected
	FPR        float64 // the rate of false positives after that many
	BitsPerKey float64 // instead of a rate
	MaxBytes   uint64  // instead of a rate
	GuardBits  uint32  // families that erase: fewer erases that remove another key
	Arity      uint32  // fuse: 3 or 4
	Seed       *uint64 // of the hash
	Secret     []byte  // 16 bytes, which key the hash; for keys that others choose
	Threads    uint32  // of Build
	Format     string  // Build: the file of another system
	Parameters string  // "name=value name=value" of that format
}

// Reading says how a file is read. Zero: a file of ours, or one that is recognised.
type Reading struct {
	Secret     []byte // of a keyed filter
	Format     string // of another system
	Parameters string // "name=value name=value", for formats whose bytes do not tell
	FileName   string // FromBytes: some formats are recognised by it only
}

// Description is what a filter is, and its state.
type Description struct {
	Format        string  // "perhaps" for our own, or the name of the other system's format
	Family        string  // "line", "ribbon" and so on
	Hash          string  // "xxh3-64", "siphash-1-3" and so on
	Bytes         uint64  // of the table
	Bits          uint64  // of the table
	Probes        uint64  // per key; 0 where that means nothing
	Keys          uint64  // inserted, as recorded; duplicates count; 0: not recorded
	Capacity      uint64  // the number of keys it was made for; 0: unknown
	KeysEstimated float64 // distinct ones, from the fill
	Fill          float64 // share of bits that are set
	FPR           float64 // the rate of false positives now
	FPRAtCapacity float64 // by the model, after Capacity keys; 0: unknown
	ReadOnly      bool    // opened or static; Copy may make one that can be changed
}

// Filter is a filter of any family, or a file of another system. New, Build, Open, FromBytes and Copy make one. Its
// memory is not Go's: Close frees it; without Close the garbage collector does, at some time.
type Filter struct {
	filter *C.perhaps_filter
}

// The handle. C would crash the program without a word.
func (f *Filter) open() *C.perhaps_filter {
	if f == nil || f.filter == nil {
		panic("perhaps: use of a closed filter")
	}
	return f.filter
}

// Memory of C that lives as long as a call.
type arena struct {
	all []unsafe.Pointer
	err error // of a text or a secret that C would misread
}

func (a *arena) path(s string) *C.char {
	if strings.IndexByte(s, 0) >= 0 {
		a.err = &failure{ErrBadParameter, "a name contains a NUL"}
	}
	c := C.CString(s)
	a.all = append(a.all, unsafe.Pointer(c))
	return c
}
func (a *arena) text(s string) *C.char {
	if s == "" {
		return nil
	}
	return a.path(s)
}
func (a *arena) secret(s []byte) *C.uchar {
	if s == nil {
		return nil
	}
	if len(s) != 16 {
		a.err = &failure{ErrBadParameter, "a secret has 16 bytes"}
	}
	c := C.CBytes(s)
	a.all = append(a.all, c)
	return (*C.uchar)(c)
}
func (a *arena) free() {
	for _, p := range a.all {
		C.free(p)
	}
}

func (o Options) inC(a *arena) (*C.perhaps_options, error) {
	to := (*C.perhaps_options)(C.calloc(1, C.sizeof_perhaps_options))
	a.all = append(a.all, unsafe.Pointer(to))
	to.size = C.sizeof_perhaps_options
	to.family = a.text(o.Family)
	to.keys = C.uint64_t(o.Keys)
	to.fpr = C.double(o.FPR)
	to.bits_per_key = C.double(o.BitsPerKey)
	to.max_bytes = C.uint64_t(o.MaxBytes)
	to.guard_bits = C.uint32_t(o.GuardBits)
	to.arity = C.uint32_t(o.Arity)
	if o.Seed != nil {
		seed := (*C.uint64_t)(C.malloc(8))
		a.all = append(a.all, unsafe.Pointer(seed))
		*seed = C.uint64_t(*o.Seed)
		to.seed = seed
	}
	to.threads = C.uint32_t(o.Threads)
	to.format = a.text(o.Format)
	to.parameters = a.text(o.Parameters)
	to.secret = a.secret(o.Secret)
	return to, a.err
}

func made(call func(**C.perhaps_filter) C.perhaps_status) (*Filter, error) {
	var filter *C.perhaps_filter
	if err := check(func() C.perhaps_status { return call(&filter) }); err != nil {
		return nil, err
	}
	f := &Filter{filter}
	runtime.SetFinalizer(f, (*Filter).Close)
	return f, nil
}

// All keys in a row, and where each ends.
func packed(keys [][]byte) (*C.char, *C.size_t, []byte, []C.size_t) {
	size := 1 // never empty: its address is taken
	for _, key := range keys {
		size += len(key)
	}
	bytes := make([]byte, 0, size)
	ends := make([]C.size_t, len(keys)+1)
	for i, key := range keys {
		bytes = append(bytes, key...)
		ends[i] = C.size_t(len(bytes))
	}
	return (*C.char)(unsafe.Pointer(&bytes[:1][0])), &ends[0], bytes, ends
}

func numbers(integers []uint64) *C.uint64_t {
	if len(integers) == 0 {
		return nil
	}
	return (*C.uint64_t)(unsafe.Pointer(&integers[0]))
}

// New makes an empty filter.
func New(options Options) (*Filter, error) {
	var a arena
	defer a.free()
	in, err := options.inC(&a)
	if err != nil {
		return nil, err
	}
	return made(func(to **C.perhaps_filter) C.perhaps_status { return C.perhaps_new(in, to) })
}

// Build makes a filter of all these keys; one of a static family such as "ribbon" can only be made so.
func Build(options Options, keys [][]byte) (*Filter, error) {
	var a arena
	defer a.free()
	in, err := options.inC(&a)
	if err != nil {
		return nil, err
	}
	bytes, ends, _, _ := packed(keys)
	return made(func(to **C.perhaps_filter) C.perhaps_status {
		return C.go_build(in, bytes, ends, C.size_t(len(keys)), to)
	})
}

// BuildIntegers does the same with numbers, which are other keys than their text or bytes.
func BuildIntegers(options Options, integers []uint64) (*Filter, error) {
	var a arena
	defer a.free()
	in, err := options.inC(&a)
	if err != nil {
		return nil, err
	}
	return made(func(to **C.perhaps_filter) C.perhaps_status {
		return C.perhaps_build_integers(in, numbers(integers), C.size_t(len(integers)), to)
	})
}

func (r Reading) inC(a *arena) *C.perhaps_open_options {
	to := (*C.perhaps_open_options)(C.calloc(1, C.sizeof_perhaps_open_options))
	a.all = append(a.all, unsafe.Pointer(to))
	to.size = C.sizeof_perhaps_open_options
	to.format = a.text(r.Format)
	to.parameters = a.text(r.Parameters)
	to.file_name = a.text(r.FileName)
	to.secret = a.secret(r.Secret)
	return to
}

// Open maps a file. The filter is read-only; Copy makes one that can be changed. While it is open, the file may be
// replaced by renaming another one over it; a program that truncates it kills this one (SIGBUS).
func (r Reading) Open(path string) (*Filter, error) {
	var a arena
	defer a.free()
	in, name := r.inC(&a), a.path(path)
	if a.err != nil {
		return nil, a.err
	}
	return made(func(to **C.perhaps_filter) C.perhaps_status { return C.perhaps_open(name, in, to) })
}

// FromBytes copies the bytes of a file.
func (r Reading) FromBytes(bytes []byte) (*Filter, error) {
	var a arena
	defer a.free()
	in := r.inC(&a)
	if a.err != nil {
		return nil, a.err
	}
	var data unsafe.Pointer
	if len(bytes) != 0 {
		data = unsafe.Pointer(&bytes[0])
	}
	return made(func(to **C.perhaps_filter) C.perhaps_status {
		return C.perhaps_from_bytes(data, C.size_t(len(bytes)), in, to)
	})
}

// Open maps a file of ours, or of another system that is recognised.
func Open(path string) (*Filter, error) { return Reading{}.Open(path) }

// FromBytes copies the bytes of such a file.
func FromBytes(bytes []byte) (*Filter, error) { return Reading{}.FromBytes(bytes) }

// Copy makes a copy in memory, which can be changed if the family can.
func (f *Filter) Copy() (*Filter, error) {
	defer runtime.KeepAlive(f)
	return made(func(to **C.perhaps_filter) C.perhaps_status { return C.perhaps_copy(f.open(), to) })
}

// Close gives back the memory. A closed filter may be closed again, and not otherwise used.
func (f *Filter) Close() error {
	C.perhaps_free(f.filter)
	f.filter = nil
	runtime.SetFinalizer(f, nil)
	return nil
}

// MayContain is false if the key is certainly absent.
func (f *Filter) MayContain(key []byte) bool {
	defer runtime.KeepAlive(f)
	var bytes *C.char
	if len(key) != 0 {
		bytes = (*C.char)(unsafe.Pointer(&key[0]))
	}
	return C.go_query_one(f.open(), bytes, C.size_t(len(key))) != 0
}

// MayContainAll answers for many keys, in less time for each.
func (f *Filter) MayContainAll(keys [][]byte) []bool {
	defer runtime.KeepAlive(f)
	bytes, ends, _, _ := packed(keys)
	answers := make([]uint64, len(keys)/64+1)
	C.go_query(f.open(), bytes, ends, C.size_t(len(keys)), numbers(answers))
	return spread(answers, len(keys))
}

// MayContainIntegers answers for numbers; formats of other systems have none.
func (f *Filter) MayContainIntegers(integers []uint64) ([]bool, error) {
	defer runtime.KeepAlive(f)
	answers := make([]uint64, len(integers)/64+1)
	err := check(func() C.perhaps_status {
		return C.perhaps_query_integers(f.open(), numbers(integers), C.size_t(len(integers)), numbers(answers))
	})
	if err != nil {
		return nil, err
	}
	return spread(answers, len(integers)), nil
}

func spread(bits []uint64, count int) []bool {
	result := make([]bool, count)
	for i := range result {
		result[i] = bits[i/64]>>(i%64)&1 != 0
	}
	return result
}

// Insert inserts keys. After ErrFull some of them are in.
func (f *Filter) Insert(keys ...[]byte) error {
	defer runtime.KeepAlive(f)
	bytes, ends, _, _ := packed(keys)
	return check(func() C.perhaps_status { return C.go_insert(f.open(), bytes, ends, C.size_t(len(keys))) })
}

// InsertIntegers inserts numbers. After ErrFull some of them are in.
func (f *Filter) InsertIntegers(integers ...uint64) error {
	defer runtime.KeepAlive(f)
	return check(func() C.perhaps_status {
		return C.perhaps_insert_integers(f.open(), numbers(integers), C.size_t(len(integers)), nil)
	})
}

// Erase erases a key that was inserted, and reports whether it was there. One that was not inserted, but looks present,
// takes another with it.
func (f *Filter) Erase(key []byte) (bool, error) {
	defer runtime.KeepAlive(f)
	bytes, _, _, _ := packed([][]byte{key})
	return erased(func(to *C.perhaps_erased) C.perhaps_status {
		return C.go_erase(f.open(), bytes, C.size_t(len(key)), to)
	})
}

// EraseInteger erases a number that was inserted, and reports whether it was there.
func (f *Filter) EraseInteger(integer uint64) (bool, error) {
	defer runtime.KeepAlive(f)
	return erased(func(to *C.perhaps_erased) C.perhaps_status {
		return C.perhaps_erase_integers(f.open(), numbers([]uint64{integer}), 1, to)
	})
}

func erased(call func(*C.perhaps_erased) C.perhaps_status) (bool, error) {
	counts := C.perhaps_erased{size: C.sizeof_perhaps_erased}
	if err := check(func() C.perhaps_status { return call(&counts) }); err != nil {
		return false, err
	}
	return counts.absent == 0, nil
}

// Merge makes it the filter of both key sets.
func (f *Filter) Merge(other *Filter) error {
	defer runtime.KeepAlive(f)
	defer runtime.KeepAlive(other)
	return check(func() C.perhaps_status { return C.perhaps_merge(f.open(), other.open()) })
}

// Intersect makes it the filter of the keys in both, approximately.
func (f *Filter) Intersect(other *Filter) error {
	defer runtime.KeepAlive(f)
	defer runtime.KeepAlive(other)
	return check(func() C.perhaps_status { return C.perhaps_intersect(f.open(), other.open()) })
}

// Save writes a file, whole or not at all.
func (f *Filter) Save(path string) error {
	defer runtime.KeepAlive(f)
	var a arena
	defer a.free()
	name := a.path(path)
	if a.err != nil {
		return a.err
	}
	return check(func() C.perhaps_status { return C.perhaps_save(f.open(), name) })
}

// Bytes returns the bytes of that file.
func (f *Filter) Bytes() ([]byte, error) {
	defer runtime.KeepAlive(f)
	var size C.size_t
	C.perhaps_to_bytes(f.open(), nil, 0, &size)
	bytes := make([]byte, int(size)+1)
	err := check(func() C.perhaps_status {
		return C.perhaps_to_bytes(f.open(), unsafe.Pointer(&bytes[0]), size, &size)
	})
	if err != nil {
		return nil, err
	}
	return bytes[:size], nil
}

// Describe says what it is. It reads every bit.
func (f *Filter) Describe() (Description, error) {
	defer runtime.KeepAlive(f)
	var d C.perhaps_description
	d.size = C.sizeof_perhaps_description
	if err := check(func() C.perhaps_status { return C.perhaps_describe(f.open(), &d) }); err != nil {
		return Description{}, err
	}
	return Description{
		Format: C.GoString(&d.format[0]), Family: C.GoString(&d.family[0]), Hash: C.GoString(&d.hash[0]),
		Bytes: uint64(d.bytes), Bits: uint64(d.bits), Probes: uint64(d.probes), Keys: uint64(d.keys),
		Capacity: uint64(d.capacity), KeysEstimated: float64(d.keys_estimated), Fill: float64(d.fill),
		FPR: float64(d.fpr), FPRAtCapacity: float64(d.fpr_at_capacity), ReadOnly: d.read_only != 0,
	}, nil
}

// ByteSize is that of the table in memory.
func (f *Filter) ByteSize() uint64 {
	defer runtime.KeepAlive(f)
	return uint64(C.perhaps_byte_size(f.open()))
}

// Version is that of the library.
func Version() string { return C.GoString(C.perhaps_version()) }
