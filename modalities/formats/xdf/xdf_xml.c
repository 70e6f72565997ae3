/* Just enough XML for what stands in an XDF file: elements, text, the five entities and numbers; attributes are
 * skipped. */
#include <stdlib.h>
#include <string.h>

#include "modalities/formats/xdf/xdf.h"

enum { TEXT = 4096, PATH = 512, DEEPEST = 16 };

typedef struct walker {
  const char *at, *end;
  char text[TEXT], path[PATH];
  size_t n_text, n_path;
  size_t lengths[DEEPEST]; /* of the path before each open element */
  int depth;
} walker;

static void put(walker *w, const char *bytes, size_t n) {
  if (w->n_text + n >= TEXT) return;
  memcpy(w->text + w->n_text, bytes, n);
  w->n_text += n;
}

static void put_code(walker *w, unsigned long c) {
  char b[4];
  if (c == 0 || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) return;
  if (c < 0x80) {
    b[0] = (char)c;
    put(w, b, 1);
  } else if (c < 0x800) {
    b[0] = (char)(0xC0 | c >> 6);
    b[1] = (char)(0x80 | (c & 0x3F));
    put(w, b, 2);
  } else if (c < 0x10000) {
    b[0] = (char)(0xE0 | c >> 12);
    b[1] = (char)(0x80 | (c >> 6 & 0x3F));
    b[2] = (char)(0x80 | (c & 0x3F));
    put(w, b, 3);
  } else {
    b[0] = (char)(0xF0 | c >> 18);
    b[1] = (char)(0x80 | (c >> 12 & 0x3F));
    b[2] = (char)(0x80 | (c >> 6 & 0x3F));
    b[3] = (char)(0x80 | (c & 0x3F));
    put(w, b, 4);
  }
}

static void take_entity(walker *w) {
  static const struct {
    const char *name;
    char c;
  } known[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    size_t n = strlen(known[i].name);
    if ((size_t)(w->end - w->at) < n || memcmp(w->at, known[i].name, n) != 0) continue;
    put(w, &known[i].c, 1);
    w->at += n;
    return;
  }
  const char *semicolon = memchr(w->at, ';', (size_t)(w->end - w->at < 12 ? w->end - w->at : 12));
  if (semicolon != NULL && w->at[1] == '#') {
    char number[16] = "";
    memcpy(number, w->at + 2, (size_t)(semicolon - w->at - 2));
    put_code(w, number[0] == 'x' ? strtoul(number + 1, NULL, 16) : strtoul(number, NULL, 10));
    w->at = semicolon + 1;
    return;
  }
  put(w, w->at++, 1);
}

/* Behind "<": the name up to a blank, '/' or '>', then everything up to '>'. */
static bool open_element(walker *w, void (*take)(void *, const char *, const char *), void *context) {
  const char *name = w->at, *close = memchr(w->at, '>', (size_t)(w->end - w->at));
  size_t n = 0;
  if (close == NULL || w->depth == DEEPEST) return false;
  while (name + n < close && strchr(" \t\r\n/", name[n]) == NULL) n++;
  if (n == 0 || w->n_path + n + 2 > PATH) return false;
  w->lengths[w->depth++] = w->n_path;
  if (w->n_path > 0) w->path[w->n_path++] = '/';
  memcpy(w->path + w->n_path, name, n);
  w->n_path += n;
  w->path[w->n_path] = '\0';
  w->n_text = 0;
  w->at = close + 1;
  if (close[-1] != '/') return true;
  take(context, w->path, "");
  w->n_path = w->lengths[--w->depth];
  w->path[w->n_path] = '\0';
  return true;
}

static bool close_element(walker *w, void (*take)(void *, const char *, const char *), void *context) {
  const char *close = memchr(w->at, '>', (size_t)(w->end - w->at));
  if (close == NULL || w->depth == 0) return false;
  w->text[w->n_text] = '\0';
  take(context, w->path, w->text);
  w->n_path = w->lengths[--w->depth];
  w->path[w->n_path] = '\0';
  w->n_text = 0;
  w->at = close + 1;
  return true;
}

/* "<?...?>", "<!...>" */
static bool skip_other(walker *w) {
  const char *close = memchr(w->at, '>', (size_t)(w->end - w->at));
  if (close == NULL) return false;
  w->at = close + 1;
  return true;
}

bool sn_xdf_walk_xml(const char *xml, int64_t n, void (*take)(void *context, const char *path, const char *text),
                     void *context) {
  walker w;
  memset(&w, 0, sizeof w);
  w.at = xml;
  w.end = xml + n;
  while (w.at < w.end) {
    if (*w.at == '&') {
      take_entity(&w);
    } else if (*w.at != '<') {
      put(&w, w.at++, 1);
    } else {
      w.at++;
      if (w.at == w.end) return false;
      bool good = *w.at == '/'                   ? close_element(&w, take, context)
                  : *w.at == '?' || *w.at == '!' ? skip_other(&w)
                                                 : open_element(&w, take, context);
      if (!good) return false;
    }
  }
  return w.depth == 0;
}
