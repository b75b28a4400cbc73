// The lab in C: peer write NAME FOLDER, peer read FOLDER FILE...
#include <perhaps.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(perhaps_status status) {
  if (status == PERHAPS_OK) return;
  fprintf(stderr, "%s\n", perhaps_last_error());
  exit(1);
}

// The lines of a file.
static perhaps_key* lines_of(const char* folder, const char* name, size_t* count) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE* file = fopen(path, "rb");
  if (file == NULL) exit(2);
  fseek(file, 0, SEEK_END);
  const size_t size = (size_t)ftell(file);
  rewind(file);
  char* text = malloc(size + 1);
  if (fread(text, 1, size, file) != size) exit(2);
  fclose(file);
  perhaps_key* keys = malloc((size + 1) * sizeof *keys);
  *count = 0;
  for (char *at = text, *end; at < text + size; at = end + 1) {
    end = memchr(at, '\n', (size_t)(text + size - at));
    keys[*count].data = at;
    keys[(*count)++].size = (size_t)(end - at);
  }
  return keys;
}

static const char* ending(const char* file) { return strrchr(file, '.') + 1; }

int main(int argc, char** argv) {
  size_t count = 0;
  if (argc == 4 && strcmp(argv[1], "write") == 0) {
    const perhaps_key* keys = lines_of(argv[3], "keys", &count);
    const char* const kinds[] = {"lab", "line", "ribbon"};
    for (int i = 0; i < 3; ++i) {
      perhaps_options options = {.size = sizeof options};
      if (i == 0) {
        options.format = "lab";
      } else {
        options.family = kinds[i];
        options.keys = count;
      }
      perhaps_filter* filter = NULL;
      char path[4096];
      snprintf(path, sizeof path, "%s/%s.%s", argv[3], argv[2], kinds[i]);
      check(perhaps_build(&options, keys, count, &filter));
      check(perhaps_save(filter, path));
      perhaps_free(filter);
    }
    return 0;
  }
  const perhaps_key* keys = lines_of(argv[2], "probes", &count);
  uint64_t* answers = malloc((count / 64 + 1) * sizeof *answers);
  for (int i = 3; i < argc; ++i) {
    perhaps_open_options options = {.size = sizeof options};
    if (strcmp(ending(argv[i]), "lab") == 0) options.format = "lab";
    perhaps_filter* filter = NULL;
    check(perhaps_open(argv[i], &options, &filter));
    check(perhaps_query(filter, keys, count, answers));
    for (size_t k = 0; k < count; ++k) putchar('0' + (int)(answers[k / 64] >> k % 64 & 1));
    putchar('\n');
    perhaps_free(filter);
  }
  return 0;
}
