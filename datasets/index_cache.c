/* needs: full */
#include "datasets/index_cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/stream.h"

typedef struct entry {
  const char *key;
  const char *cells[SN_MANIFEST_COLUMNS];
} entry;

struct sn_index_cache {
  char *path;
  char *text; /* the file as it was */
  int64_t n, capacity;
  entry *entries; /* sorted by path; of two lines for one path the later */
  FILE *file;     /* for appending; opened at the first append */
  char *header;
  bool usable; /* the file is there with the same header */
};

static int compare_entries(const void *a, const void *b) {
  const entry *x = a, *y = b;
  int order = strcmp(x->cells[SN_MANIFEST_PATH], y->cells[SN_MANIFEST_PATH]);
  if (order != 0) return order;
  return x->key < y->key ? -1 : x->key > y->key; /* keys lie in the text: the order of lines */
}

/* Cuts a line at its tabs. */
static bool split_line(char *line, entry *out) {
  out->key = line;
  for (int c = 0; c < SN_MANIFEST_COLUMNS; c++) {
    char *tab = strchr(line, '\t');
    if (tab == NULL) return false;
    *tab = 0;
    line = tab + 1;
    out->cells[c] = line;
  }
  return strchr(line, '\t') == NULL;
}

static sn_status read_lines(sn_index_cache *cache, int64_t n_bytes, sn_error *err) {
  char *at = cache->text, *end = at + n_bytes;
  bool first = true;
  while (at < end) {
    char *stop = memchr(at, '\n', (size_t)(end - at));
    if (stop == NULL) return SN_OK; /* cut short by a kill */
    *stop = 0;
    if (first) {
      if (strcmp(at, cache->header) != 0) return SN_OK;
      cache->usable = true;
      first = false;
    } else {
      entry e;
      if (split_line(at, &e)) {
        SN_TRY(sn_grow(&cache->entries, &cache->capacity, cache->n + 1, sizeof e, "index cache", err));
        cache->entries[cache->n++] = e;
      }
    }
    at = stop + 1;
  }
  return SN_OK;
}

static void sort_entries(sn_index_cache *cache) {
  if (cache->n == 0) return;
  qsort(cache->entries, (size_t)cache->n, sizeof *cache->entries, compare_entries);
  int64_t kept = 0;
  for (int64_t i = 0; i < cache->n; i++) {
    bool superseded = i + 1 < cache->n && strcmp(cache->entries[i].cells[SN_MANIFEST_PATH],
                                                 cache->entries[i + 1].cells[SN_MANIFEST_PATH]) == 0;
    if (!superseded) cache->entries[kept++] = cache->entries[i];
  }
  cache->n = kept;
}

sn_status sn_index_cache_check_output(const char *path, sn_error *err) {
  return sn_check_output(path, "sonde index cache ", "an index cache", err);
}

sn_status sn_index_cache_open(const char *path, const char *options, sn_index_cache **out, sn_error *err) {
  sn_index_cache *cache = NULL;
  sn_stream *stream = NULL;
  sn_string header = {0};
  int64_t n = 0;
  sn_status status = SN_OK;
  SN_TRY(sn_alloc(&cache, 1, sizeof *cache, "index cache", err));
  SN_TRY_GOTO(sn_string_printf(&header, err, "sonde index cache 3\t%s", options), fail);
  cache->header = header.data;
  if (path != NULL) {
    SN_TRY_GOTO(sn_strdup(&cache->path, path, "index cache", err), fail);
    SN_TRY_GOTO(sn_index_cache_check_output(path, err), fail);
    if (sn_path_exists(path)) {
      SN_TRY_GOTO(sn_stream_open(path, &stream, err), fail);
      SN_TRY_GOTO(sn_stream_read_all(stream, INT64_C(1) << 32, &cache->text, &n, err), fail);
      SN_TRY_GOTO(read_lines(cache, n, err), fail);
      sort_entries(cache);
    }
  }
  sn_stream_close(stream);
  *out = cache;
  return SN_OK;
fail:
  sn_stream_close(stream);
  sn_index_cache_close(cache);
  return status;
}

void sn_index_cache_close(sn_index_cache *cache) {
  if (cache == NULL) return;
  if (cache->file != NULL) fclose(cache->file);
  sn_free(cache->path);
  sn_free(cache->text);
  sn_free(cache->entries);
  sn_free(cache->header);
  sn_free(cache);
}

bool sn_index_cache_find(const sn_index_cache *cache, const char *path, const char *const **cells, const char **key) {
  int64_t low = 0, high = cache->n;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    int order = strcmp(cache->entries[middle].cells[SN_MANIFEST_PATH], path);
    if (order == 0) {
      *cells = cache->entries[middle].cells;
      *key = cache->entries[middle].key;
      return true;
    }
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return false;
}

static sn_status io_error(const sn_index_cache *cache, sn_error *err) {
  return sn_fail(err, SN_E_IO, "%s: cannot be written: %s", cache->path, strerror(errno));
}

static sn_status open_for_append(sn_index_cache *cache, sn_error *err) {
  cache->file = fopen(cache->path, cache->usable ? "ae" : "we");
  if (cache->file == NULL) return io_error(cache, err);
  /* A line that a kill cut short is ended first, or the next one would be glued to it. */
  const char *start = cache->usable ? "\n" : cache->header;
  if (fputs(start, cache->file) < 0 || (!cache->usable && fputc('\n', cache->file) < 0)) return io_error(cache, err);
  return SN_OK;
}

sn_status sn_index_cache_append(sn_index_cache *cache, const char *key, const sn_manifest_row *row, sn_error *err) {
  if (cache->path == NULL) return SN_OK;
  if (cache->file == NULL) SN_TRY(open_for_append(cache, err));
  bool good = fputs(key, cache->file) >= 0;
  for (int c = 0; c < SN_MANIFEST_COLUMNS; c++) {
    good = good && fputc('\t', cache->file) >= 0 && fputs(row->cells[c], cache->file) >= 0;
  }
  return good && fputc('\n', cache->file) >= 0 ? SN_OK : io_error(cache, err);
}

sn_status sn_index_cache_flush(sn_index_cache *cache, sn_error *err) {
  if (cache->file != NULL && fflush(cache->file) != 0) return io_error(cache, err);
  return SN_OK;
}
