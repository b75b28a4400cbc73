/* A C99 program that knows <perhaps.h> and nothing else; the same file is compiled as C++. */
#include <perhaps.h>
#include <stdio.h>
#include <string.h>

#define CHECK(truth) \
  if (!(truth)) return printf("%s: %s (%s)\n", #truth, perhaps_last_error(), perhaps_version()), 1

int main(int argc, char** argv) {
  perhaps_options options;
  perhaps_filter* filter = NULL;
  perhaps_filter* opened = NULL;
  perhaps_key keys[2];
  uint64_t integer = 42;
  uint64_t answers = 0;
  CHECK(argc == 2);
  memset(&options, 0, sizeof options);
  options.size = sizeof options;
  options.keys = 1000;
  keys[0].data = "hello";
  keys[0].size = 5;
  keys[1].data = "world";
  keys[1].size = 5;
  CHECK(perhaps_new(&options, &filter) == PERHAPS_OK);
  CHECK(perhaps_insert(filter, keys, 1, NULL) == PERHAPS_OK);
  CHECK(perhaps_insert_integers(filter, &integer, 1, NULL) == PERHAPS_OK);
  CHECK(perhaps_save(filter, argv[1]) == PERHAPS_OK);
  CHECK(perhaps_open(argv[1], NULL, &opened) == PERHAPS_OK);
  CHECK(perhaps_query(opened, keys, 2, &answers) == PERHAPS_OK && answers == 1);
  CHECK(perhaps_query_integers(opened, &integer, 1, &answers) == PERHAPS_OK && answers == 1);
  CHECK(perhaps_insert(opened, keys, 1, NULL) == PERHAPS_UNSUPPORTED);
  CHECK(strstr(perhaps_last_error(), "read-only") != NULL);
  perhaps_free(filter);
  perhaps_free(opened);
  return 0;
}
