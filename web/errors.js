// What the library refuses, as exceptions.

const STATUS = [
  "OK",
  "TRUNCATED",
  "BAD_MAGIC",
  "BAD_VERSION",
  "BAD_CHECKSUM",
  "BAD_PARAMETER",
  "BAD_KEY",
  "MISMATCH",
  "FULL",
  "UNSUPPORTED",
  "IO",
  "NO_MEMORY",
  "TOO_SMALL",
  "INTERNAL",
];

/** What the library refuses. `code` is the status of perhaps.h without its prefix. */
export class PerhapsError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
    this.name = new.target.name;
  }
}
/** The bytes are not a filter, are cut short, damaged or newer than this library. */
export class FormatError extends PerhapsError {}
/** There is no room for another key. `inserted` keys of the call are in. */
export class FullError extends PerhapsError {
  inserted = 0;
}
/** The filter or the format cannot do that. */
export class UnsupportedError extends PerhapsError {}

const CLASSES = {
  TRUNCATED: FormatError,
  BAD_MAGIC: FormatError,
  BAD_VERSION: FormatError,
  BAD_CHECKSUM: FormatError,
  FULL: FullError,
  UNSUPPORTED: UnsupportedError,
};

/** The exception for a status of perhaps.h. */
export function errorOf(status, message) {
  const code = STATUS[status] ?? "INTERNAL";
  return new (CLASSES[code] ?? PerhapsError)(code, message);
}
