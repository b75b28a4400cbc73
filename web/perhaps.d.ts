/** A text (hashed as UTF-8), bytes, or a 64-bit integer. 42, "42" and the eight bytes of 42 are three keys. */
export type Key = string | Uint8Array | ArrayBuffer | number | bigint;

/** Many keys: any iterable of them (but no text), or a typed array of numbers (not of bytes). */
export type Keys =
  | Iterable<Key>
  | BigUint64Array
  | BigInt64Array
  | Int32Array
  | Uint32Array
  | Int16Array
  | Uint16Array
  | Float64Array;

/** "line" is the default. */
export type Family = string; // build.mjs names them

/** How large a filter is made. `keys` and one of the next three; without any of them the rate is 0.01. */
export interface Size {
  /** How many will be added; `create` needs it or `maxBytes`. 0 is for families that grow. */
  keys?: number;
  /** The rate of false positives after `keys` keys. */
  fpr?: number;
  bitsPerKey?: number;
  maxBytes?: number;
}

export interface CreateOptions extends Size {
  family?: Family;
  /** Families that remove keys: fewer removals that take another key along. */
  guardBits?: number;
  /** Fuse: 3 or 4. */
  arity?: number;
  /** Of the hash. */
  seed?: number | bigint;
  /** 16 bytes that key the hash: for filters whose keys or queries come from others. */
  secret?: Uint8Array;
}

export interface BuildOptions extends CreateOptions {
  /** The format of another system, as `formats()` names it; then `parameters` are its own. */
  format?: string;
  parameters?: Record<string, string | number | boolean>;
}

export interface OpenOptions {
  /** Where content and name do not tell. */
  format?: string;
  parameters?: Record<string, string | number | boolean>;
  /** Some formats are recognised by their file name only. A File has it. */
  fileName?: string;
  secret?: Uint8Array;
}

/** The figures of a filter, with the names of `perhaps info --json`. */
export interface Figures {
  family: string;
  hash: string;
  /** Inserted, as recorded; duplicates count. */
  keys: number | null;
  /** Distinct ones, from the fill. */
  keys_distinct: number;
  capacity: number | null;
  bits: number;
  bytes: number;
  bits_per_key: number | null;
  probes: number;
  /** Share of bits that are set. */
  fill: number;
  /** The rate of false positives now. */
  fpr: number;
  fpr_at_capacity: number | null;
  wrong_remove?: number;
  needs_rebuild?: boolean;
  more: Record<string, string>;
}

export interface Description extends Figures {
  /** "perhaps", or the name of another system's format. */
  format: string;
  system?: string;
  about: Record<string, string>;
  /** Every filter inside another system's file. */
  entries: (Figures & { name: string; offset: number; size: number; format: string })[];
  notes: string[];
}

export type Code =
  | "TRUNCATED"
  | "BAD_MAGIC"
  | "BAD_VERSION"
  | "BAD_CHECKSUM"
  | "BAD_PARAMETER"
  | "BAD_KEY"
  | "MISMATCH"
  | "FULL"
  | "UNSUPPORTED"
  | "IO"
  | "NO_MEMORY"
  | "TOO_SMALL"
  | "INTERNAL";

/** What the library refuses. */
export class PerhapsError extends Error {
  readonly code: Code;
}
/** The bytes are not a filter, are cut short, damaged or newer than this library. */
export class FormatError extends PerhapsError {}
/** There is no room for another key; the first `inserted` keys of the call are in. */
export class FullError extends PerhapsError {
  readonly inserted: number;
}
/** The filter or the format cannot do that. */
export class UnsupportedError extends PerhapsError {}

/** A filter answers *perhaps* (true) or *no* (false), and *no* is certain. */
export class Filter {
  private constructor();
  /** An empty filter of a family that takes keys one by one. */
  static create(options: CreateOptions): Promise<Filter>;
  /** From all of its keys at once: any family, for as many unless `keys` is given, or the format of another system. */
  static build(keys: Keys, options?: BuildOptions): Promise<Filter>;
  /** The bytes of a file: ours, or another system's, recognised by content and name. */
  static open(source: Uint8Array | ArrayBuffer | ArrayBufferView | Blob, options?: OpenOptions): Promise<Filter>;

  add(key: Key): this;
  addMany(keys: Keys): this;
  /** False: certainly absent. */
  has(key: Key): boolean;
  /**
   * A byte for each key: 0 is certainly absent. Several times as fast as single calls. The answers are the first bytes
   * of `into`, if it is given: to ask again and again without new arrays.
   */
  hasMany(keys: Keys, into?: Uint8Array): Uint8Array;
  /** Only keys that were added: one that was not may take another key with it. */
  remove(key: Key): boolean;
  removeMany(keys: Keys): { removed: number; absent: number; kept: number };
  /** Becomes the filter of both key sets. Family, size and hash must be the same. */
  merge(other: Filter): this;
  intersect(other: Filter): this;
  /** A copy that can be changed, if the family can. */
  copy(): Filter;
  /** The file: the same bytes as C++, Python, Go, Rust and the command line write. */
  toBytes(): Uint8Array;
  /** Of the table. */
  readonly byteSize: number;
  readonly readOnly: boolean;
  describe(): Description;
  /** The share of set bits in each of `cells` equal parts of the table; -1 where there are no bytes. */
  fill(cells: number, entry?: number): Float32Array;
  /** Bytes of the table. */
  table(from?: number, size?: number): Uint8Array;
  /** Gives back its memory. A filter that is garbage collected does so too, at some time. */
  free(): void;
}

export interface SizeRow {
  family: Family;
  keys: number;
  bits: number;
  bytes: number;
  bits_per_key: number;
  probes: number;
  fpr: number;
  /** The fewest bits per key that any filter needs at this rate. */
  bits_per_key_limit: number;
  above_limit: number;
  summary: string;
  add: boolean;
  remove: boolean;
  merge: boolean;
  grow: boolean;
}

/** What each family would need: `perhaps size --json`. */
export function sizeTable(size?: Size): Promise<SizeRow[]>;

export function families(): Promise<
  { name: Family; summary: string; add: boolean; remove: boolean; merge: boolean; grow: boolean; forget: boolean }[]
>;
export function formats(): Promise<{ name: string; summary: string; writes: boolean; converts: boolean }[]>;
/** Numbers as good as random, the same ones for the same seed. */
export function randomKeys(count: number, seed?: number): Promise<BigUint64Array>;
/** Bytes that the module has taken from the system so far. */
export function memoryInUse(): Promise<number>;
export function version(): Promise<string>;
/** Resolves once the module is loaded. Every other function awaits it. */
export function ready(): Promise<void>;
