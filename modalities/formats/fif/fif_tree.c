/* FIF: the walk over the tags, and typed access to them. */
#include <string.h>

#include "core/alloc.h"
#include "core/text.h"
#include "modalities/formats/fif/fif_parts.h"

/* LONGEST_TEXT: names of some ten thousand channels. */
enum { WINDOW = 4096, LONGEST_TEXT = 1 << 24 };

/* ---- the walk ---- */

typedef struct walk {
  const sn_stream *stream;
  bool tolerant;
  int64_t size;
  int64_t seen;              /* bytes of the tags so far: more than the file has means a circle or an overlap */
  int64_t window_at, window_n;
  uint8_t window[WINDOW];
  int64_t depth, open[FIF_DEEPEST];
  int64_t mark, steps, until; /* Brent's test for circles: the walk passes `mark` again */
} walk;

static const char *name_of(const walk *w) { return sn_stream_name(w->stream); }

/* Tags stand close together in the header and far apart in the data: a small window serves both. */
static sn_status read_header(walk *w, int64_t at, const uint8_t **bytes, sn_error *err) {
  if (at < w->window_at || at + FIF_TAG_HEADER > w->window_at + w->window_n) {
    int64_t n = w->size - at < WINDOW ? w->size - at : WINDOW;
    SN_TRY(sn_stream_read_exact(w->stream, at, w->window, n, err));
    w->window_at = at;
    w->window_n = n;
  }
  *bytes = w->window + (at - w->window_at);
  return SN_OK;
}

static sn_status open_block(walk *w, fif_tree *tree, int64_t at, int32_t kind, sn_error *err) {
  if (w->depth == FIF_DEEPEST)
    return sn_fail_at(err, SN_E_CORRUPT, at, -1, "block", "'%s': blocks are nested deeper than %d at byte %lld", name_of(w),
                      FIF_DEEPEST, (long long)at);
  SN_TRY(sn_grow(&tree->blocks, &tree->block_room, tree->n_blocks + 1, sizeof *tree->blocks, "blocks", err));
  tree->blocks[tree->n_blocks] = (fif_block){kind, w->open[w->depth - 1], tree->n_tags, -1};
  w->open[w->depth++] = tree->n_blocks++;
  return SN_OK;
}

static sn_status close_block(walk *w, fif_tree *tree, int64_t at, int32_t kind, sn_error *err) {
  const fif_block *block = &tree->blocks[w->open[w->depth - 1]];
  if (w->depth == 1 || block->kind != kind)
    return sn_fail_at(err, SN_E_CORRUPT, at, -1, "block", "'%s': block %d ends at byte %lld, where block %d is open", name_of(w),
                      kind, (long long)at, w->depth == 1 ? FIFFB_FILE : block->kind);
  tree->blocks[w->open[--w->depth]].end = tree->n_tags;
  return SN_OK;
}

static sn_status take_tag(walk *w, fif_tree *tree, int64_t at, fif_tag tag, sn_error *err) {
  if (tag.kind == FIFF_BLOCK_START || tag.kind == FIFF_BLOCK_END) {
    uint8_t content[4];
    if (tag.type != FIFFT_INT || tag.size != 4)
      return sn_fail_at(err, SN_E_CORRUPT, at, -1, "block", "'%s': the block mark at byte %lld has %d bytes of type %d, 4 of type 3 are expected",
                        name_of(w), (long long)at, tag.size, tag.type);
    SN_TRY(sn_stream_read_exact(w->stream, tag.offset, content, 4, err));
    int32_t kind = sn_be_i32(content);
    return tag.kind == FIFF_BLOCK_START ? open_block(w, tree, at, kind, err) : close_block(w, tree, at, kind, err);
  }
  if (tag.kind == FIFF_NOP) return SN_OK;
  tag.block = w->open[w->depth - 1];
  SN_TRY(sn_grow(&tree->tags, &tree->tag_room, tree->n_tags + 1, sizeof *tree->tags, "tags", err));
  tree->tags[tree->n_tags++] = tag;
  return SN_OK;
}

/* A walk that does not lead in a circle never meets a byte twice. */
static sn_status check_circle(walk *w, int64_t at, int64_t length, sn_error *err) {
  w->seen += length;
  if (at == w->mark || w->seen > w->size)
    return sn_fail_at(err, SN_E_CORRUPT, at, -1, "next", "'%s': the tags lead in a circle, or overlap, at byte %lld", name_of(w),
                      (long long)at);
  if (++w->steps == w->until) {
    w->mark = at;
    w->until *= 2;
  }
  return SN_OK;
}

/* One tag; *next [out] is where the walk goes on, -1: nowhere. */
static sn_status step(walk *w, fif_tree *tree, int64_t at, int64_t *next, sn_error *err) {
  const uint8_t *h;
  *next = -1;
  if (at > w->size - FIF_TAG_HEADER) {
    tree->truncated = true;
    if (at == w->size || w->tolerant) return SN_OK; /* whether a block is open is seen at the end */
    return sn_fail_at(err, SN_E_CORRUPT, at, -1, "tag", "'%s': a tag begins at byte %lld, the file ends at %lld", name_of(w),
                      (long long)at, (long long)w->size);
  }
  SN_TRY(read_header(w, at, &h, err));
  fif_tag tag = {sn_be_i32(h), sn_be_i32(h + 4), sn_be_i32(h + 8), 0, at + FIF_TAG_HEADER, 0};
  int32_t pointer = sn_be_i32(h + 12);
  if (tag.kind <= 0 || tag.size < 0 || pointer < -1)
    return sn_fail_at(err, SN_E_CORRUPT, at, -1, "tag", "'%s': no tag at byte %lld: kind %d, size %d, next %d", name_of(w),
                      (long long)at, tag.kind, tag.size, pointer);
  int64_t left = w->size - tag.offset;
  if (tag.size > left) {
    if (!w->tolerant)
      return sn_fail_at(err, SN_E_CORRUPT, at, -1, "size", "'%s': the tag at byte %lld (kind %d) has %d bytes, the file only %lld more",
                        name_of(w), (long long)at, tag.kind, tag.size, (long long)left);
    tree->truncated = true;
    tag.cut = 1;
    tag.size = (int32_t)left;
    /* Half a buffer of data is worth having, half of anything else is not. */
    return tag.kind == FIFF_DATA_BUFFER ? take_tag(w, tree, at, tag, err) : SN_OK;
  }
  SN_TRY(check_circle(w, at, FIF_TAG_HEADER + (int64_t)tag.size, err));
  SN_TRY(take_tag(w, tree, at, tag, err));
  *next = pointer == 0 ? tag.offset + tag.size : pointer;
  return SN_OK;
}

static sn_status check_beginning(const sn_stream *stream, int64_t size, sn_error *err) {
  uint8_t h[FIF_TAG_HEADER] = {0};
  int64_t n = 0;
  sn_status status = sn_stream_read(stream, 0, h, FIF_TAG_HEADER, &n, err);
  if (status != SN_OK && status != SN_END) return status;
  int32_t kind = sn_be_i32(h), type = sn_be_i32(h + 4);
  if (n >= 4 && kind == FIFF_FILE_ID << 24)
    return sn_fail_at(err, SN_E_FORMAT, 0, -1, NULL, "'%s' is a FIF file written with the low byte first; the format has the high byte first",
                      sn_stream_name(stream));
  if (size < FIF_TAG_HEADER || kind != FIFF_FILE_ID || type != FIFFT_ID_STRUCT)
    return sn_fail_at(err, SN_E_FORMAT, 0, -1, NULL, "'%s' is no FIF file: it does not begin with a file id (tag 100)",
                      sn_stream_name(stream));
  return SN_OK;
}

sn_status sn_fif_tree_read(const sn_stream *stream, bool tolerant, fif_tree *tree, sn_error *err) {
  walk w = {.stream = stream, .tolerant = tolerant, .mark = -1, .until = 1, .depth = 1};
  sn_status status;
  memset(tree, 0, sizeof *tree);
  tree->stream = stream;
  status = tolerant ? SN_OK : sn_stream_check(stream, err);
  if (status != SN_OK) return status;
  w.size = sn_stream_size(stream);
  if (w.size < 0) return sn_stream_check(stream, err);
  SN_TRY(check_beginning(stream, w.size, err));
  SN_TRY_GOTO(sn_grow(&tree->blocks, &tree->block_room, 1, sizeof *tree->blocks, "blocks", err), fail);
  tree->blocks[tree->n_blocks++] = (fif_block){FIFFB_FILE, -1, 0, -1};
  for (int64_t at = 0; at >= 0;) SN_TRY_GOTO(step(&w, tree, at, &at, err), fail);
  if (w.depth > 1) {
    tree->truncated = true;
    if (!tolerant) {
      status = sn_fail_at(err, SN_E_CORRUPT, w.size, -1, "block", "'%s' is cut short: block %d is still open at its end", name_of(&w),
                          tree->blocks[w.open[w.depth - 1]].kind);
      goto fail;
    }
  } else {
    tree->truncated &= tree->n_tags > 0 && tree->tags[tree->n_tags - 1].cut != 0; /* only the end mark is missing */
  }
  while (w.depth > 0) tree->blocks[w.open[--w.depth]].end = tree->n_tags;
  return SN_OK;
fail:
  sn_fif_tree_free(tree);
  return status;
}

void sn_fif_tree_free(fif_tree *tree) {
  sn_free(tree->tags);
  sn_free(tree->blocks);
  memset(tree, 0, sizeof *tree);
}

/* ---- looking things up ---- */

static bool is_inside(const fif_tree *tree, int64_t block, int64_t parent) {
  while (block > parent) block = tree->blocks[block].parent;
  return block == parent;
}

int64_t sn_fif_find_block(const fif_tree *tree, int64_t parent, int32_t kind, int64_t after) {
  for (int64_t b = (after < 0 ? parent : after) + 1; b < tree->n_blocks; b++) {
    if (tree->blocks[b].first > tree->blocks[parent].end) break;
    if (tree->blocks[b].kind == kind && is_inside(tree, b, parent)) return b;
  }
  return -1;
}

const fif_tag *sn_fif_find_tag(const fif_tree *tree, int64_t block, int32_t kind, const fif_tag *after) {
  const fif_tag *end = tree->tags + tree->blocks[block].end;
  const fif_tag *t = after != NULL ? after + 1 : tree->tags + tree->blocks[block].first;
  for (; t < end; t++)
    if (t->block == block && (kind == 0 || t->kind == kind)) return t;
  return NULL;
}

/* ---- content ---- */

static sn_status wrong_content(const fif_tree *tree, const fif_tag *tag, const char *expected, sn_error *err) {
  return sn_fail_at(err, SN_E_CORRUPT, tag->offset - FIF_TAG_HEADER, -1, NULL,
                    "'%s': tag %d at byte %lld has %d bytes of type %d, %s expected", sn_stream_name(tree->stream), tag->kind,
                    (long long)tag->offset - FIF_TAG_HEADER, tag->size, tag->type, expected);
}

sn_status sn_fif_read_bytes(const fif_tree *tree, const fif_tag *tag, uint8_t *bytes, int64_t n, sn_error *err) {
  if (tag->size < n) return wrong_content(tree, tag, "more are", err);
  return sn_stream_read_exact(tree->stream, tag->offset, bytes, n, err);
}

sn_status sn_fif_read_i32(const fif_tree *tree, const fif_tag *tag, int32_t *value, sn_error *err) {
  uint8_t bytes[4];
  if ((tag->type != FIFFT_INT && tag->type != FIFFT_JULIAN) || tag->size < 4)
    return wrong_content(tree, tag, "an integer is", err);
  SN_TRY(sn_fif_read_bytes(tree, tag, bytes, 4, err));
  *value = sn_be_i32(bytes);
  return SN_OK;
}

sn_status sn_fif_read_number(const fif_tree *tree, const fif_tag *tag, double *value, sn_error *err) {
  uint8_t bytes[8];
  if (tag->type == FIFFT_DOUBLE && tag->size >= 8) {
    SN_TRY(sn_fif_read_bytes(tree, tag, bytes, 8, err));
    *value = sn_be_f64(bytes);
    return SN_OK;
  }
  if ((tag->type != FIFFT_FLOAT && tag->type != FIFFT_INT) || tag->size < 4) return wrong_content(tree, tag, "a number is", err);
  SN_TRY(sn_fif_read_bytes(tree, tag, bytes, 4, err));
  *value = tag->type == FIFFT_FLOAT ? sn_be_f32(bytes) : (double)sn_be_i32(bytes);
  return SN_OK;
}

sn_status sn_fif_read_text(const fif_tree *tree, const fif_tag *tag, char **text, sn_error *err) {
  char *bytes = NULL;
  if (tag->size > LONGEST_TEXT) return wrong_content(tree, tag, "a text of at most 16 MiB is", err);
  SN_TRY(sn_alloc(&bytes, (int64_t)tag->size + 1, 1, "text", err));
  sn_status status = sn_stream_read_exact(tree->stream, tag->offset, bytes, tag->size, err);
  char *trimmed = sn_trim(bytes);
  if (status == SN_OK) status = sn_text_to_utf8(trimmed, (int64_t)strlen(trimmed), text, NULL, err);
  sn_free(bytes);
  return status;
}

char *sn_fif_next_name(char **list) {
  static const char colon[] = "{COLON}";
  char *name = *list, *found;
  if (name == NULL) return NULL;
  *list = strchr(name, ':');
  if (*list != NULL) *(*list)++ = '\0';
  for (char *p = name; (found = strstr(p, colon)) != NULL; p = found + 1) {
    *found = ':';
    memmove(found + 1, found + sizeof colon - 1, strlen(found + sizeof colon - 1) + 1);
  }
  return name;
}
