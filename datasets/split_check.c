/* needs: full */
/* Guards: nothing of the test part may stand in another part, under whatever name. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/fs.h"
#include "core/text.h"
#include "datasets/split.h"

/* One thing that must not be shared, and which side has it. */
typedef struct claim {
  char *key;
  int64_t row;
  int side; /* 0: train, pretrain (or split a); 1: test (or split b) */
} claim;

typedef struct claims {
  int64_t n, capacity;
  claim *items;
} claims;

static void claims_free(claims *list) {
  for (int64_t i = 0; i < list->n; i++) sn_free(list->items[i].key);
  sn_free(list->items);
  memset(list, 0, sizeof *list);
}

static sn_status add_claim(claims *list, const char *first, const char *second, int64_t row, int side, sn_error *err) {
  sn_string key = {0};
  SN_TRY(sn_grow(&list->items, &list->capacity, list->n + 1, sizeof *list->items, "split", err));
  SN_TRY(sn_string_printf(&key, err, "%s%s", first, second));
  list->items[list->n++] = (claim){.key = key.data, .row = row, .side = side};
  return SN_OK;
}

static int compare_claims(const void *a, const void *b) {
  const claim *x = a, *y = b;
  int order = strcmp(x->key, y->key);
  if (order != 0) return order;
  if (x->side != y->side) return x->side - y->side;
  return (x->row > y->row) - (x->row < y->row);
}

/* Calls found(user, key, row of side 0, row of side 1) once for each key that both sides have. */
typedef void (*found_shared)(void *user, const char *key, int64_t row_0, int64_t row_1);
static void find_shared(claims *list, found_shared found, void *user) {
  if (list->n > 0) qsort(list->items, (size_t)list->n, sizeof *list->items, compare_claims);
  for (int64_t i = 0; i < list->n;) {
    int64_t j = i;
    while (j < list->n && strcmp(list->items[j].key, list->items[i].key) == 0) j++;
    const claim *first = &list->items[i], *last = &list->items[j - 1];
    if (first->side == 0 && last->side == 1) found(user, first->key, first->row, last->row);
    i = j;
  }
}

/* ---- one split ------------------------------------------------------------------------------------------------- */

typedef struct clash {
  int64_t n, row_0, row_1;
  char key[96];
} clash;

static void note_clash(void *user, const char *key, int64_t row_0, int64_t row_1) {
  clash *c = user;
  if (c->n++ > 0) return;
  c->row_0 = row_0;
  c->row_1 = row_1;
  snprintf(c->key, sizeof c->key, "%s", key);
}

static int side_of(uint8_t roles) { return (roles & SN_ROLE_PROBE_TEST) != 0; }

typedef sn_status (*claim_line)(claims *list, const sn_split *split, const sn_manifest *manifest, int64_t i, int side,
                                sn_error *err);

static sn_status claim_subject(claims *list, const sn_split *split, const sn_manifest *manifest, int64_t i, int side,
                               sn_error *err) {
  return split->subjects[i] != NULL ? add_claim(list, split->subjects[i], "", i, side, err) : SN_OK;
}

static sn_status claim_content(claims *list, const sn_split *split, const sn_manifest *manifest, int64_t i, int side,
                               sn_error *err) {
  return add_claim(list, split->checksums[i], "", i, side, err);
}

/* Two headers may describe one signal file. */
static sn_status claim_files(claims *list, const sn_split *split, const sn_manifest *manifest, int64_t i, int side,
                             sn_error *err) {
  sn_manifest_info info;
  char *folder = NULL;
  if (manifest == NULL) return SN_OK;
  SN_TRY(sn_manifest_parse(manifest, i, &info, err));
  sn_status status = sn_strdup(&folder, split->paths[i], "split", err);
  if (status == SN_OK) folder[sn_path_base(split->paths[i]) - split->paths[i]] = 0;
  for (int64_t k = 0; k < info.n_files && status == SN_OK; k++)
    status = add_claim(list, folder, info.files[k], i, side, err);
  sn_free(folder);
  sn_manifest_info_free(&info);
  return status;
}

sn_status sn_split_check(const sn_split *split, const sn_manifest *manifest, sn_error *err) {
  static const struct {
    claim_line line;
    const char *what;
  } KINDS[] = {{claim_subject, "the person"}, {claim_content, "the content"}, {claim_files, "the file"}};
  for (int64_t i = 0; i < split->n; i++) {
    bool test = (split->roles[i] & SN_ROLE_PROBE_TEST) != 0;
    if (test && split->roles[i] != SN_ROLE_PROBE_TEST) {
      return sn_fail(err, SN_E_STATE, "split: %s is a test recording and more", split->paths[i]);
    }
  }
  for (size_t k = 0; k < sizeof KINDS / sizeof KINDS[0]; k++) {
    claims list = {0};
    clash found = {0};
    sn_status status = SN_OK;
    for (int64_t i = 0; i < split->n && status == SN_OK; i++) {
      if (split->roles[i] == SN_ROLE_NONE) continue;
      status = KINDS[k].line(&list, split, manifest, i, side_of(split->roles[i]), err);
    }
    if (status == SN_OK) find_shared(&list, note_clash, &found);
    claims_free(&list);
    SN_TRY(status);
    if (found.n > 0) {
      return sn_fail(err, SN_E_STATE,
                     "split: %s '%s' stands in the training part (%s) and in the test part (%s)%s; exclude one of them",
                     KINDS[k].what, found.key, split->paths[found.row_0], split->paths[found.row_1],
                     found.n > 1 ? ", and more do" : "");
    }
  }
  return SN_OK;
}

/* ---- two splits ------------------------------------------------------------------------------------------------ */

typedef struct sharing {
  const sn_split *a, *b;
  sn_leakage *out;
  int64_t *count;
  const char *what;
} sharing;

static void note_shared(void *user, const char *key, int64_t row_a, int64_t row_b) {
  sharing *s = user;
  ++*s->count;
  if (s->out->n_named == 20) return;
  const char *newline = strchr(key, '\n');
  snprintf(s->out->names[s->out->n_named++], sizeof s->out->names[0], "%s%.40s (%.50s, %.50s)", s->what,
           newline != NULL ? newline + 1 : key, s->a->paths[row_a], s->b->paths[row_b]);
}

static sn_status claim_people(claims *list, const sn_split *split, sn_role role, int side, sn_error *err) {
  for (int64_t i = 0; i < split->n; i++) {
    if ((split->roles[i] & role) == 0 || split->subjects[i] == NULL) continue;
    sn_string name = {0};
    sn_status status = sn_string_printf(&name, err, "%s\n", sn_split_people(split));
    if (status == SN_OK) status = add_claim(list, name.data, split->subjects[i], i, side, err);
    sn_string_free(&name);
    SN_TRY(status);
  }
  return SN_OK;
}

static sn_status claim_contents(claims *list, const sn_split *split, sn_role role, int side, sn_error *err) {
  for (int64_t i = 0; i < split->n; i++) {
    if ((split->roles[i] & role) != 0) SN_TRY(add_claim(list, split->checksums[i], "", i, side, err));
  }
  return SN_OK;
}

/* "quick", "sha256", or "" when a split holds both kinds. */
static void kind_of(const sn_split *split, char kind[16]) {
  kind[0] = 0;
  for (int64_t i = 0; i < split->n; i++) {
    if (split->checksums[i] == NULL) continue;
    size_t n = strcspn(split->checksums[i], ":");
    if (kind[0] == 0 && n < 16) snprintf(kind, 16, "%.*s", (int)n, split->checksums[i]);
    if (strlen(kind) != n || strncmp(kind, split->checksums[i], n) != 0) {
      kind[0] = 0;
      return;
    }
  }
}

sn_status sn_split_leakage(const sn_split *a, sn_role role_a, const sn_split *b, sn_role role_b, sn_leakage *out,
                           sn_error *err) {
  claims list = {0};
  sharing s = {.a = a, .b = b, .out = out, .count = &out->n_subjects, .what = "person "};
  char kind_a[16], kind_b[16];
  sn_status status = SN_OK;
  memset(out, 0, sizeof *out);
  SN_TRY_GOTO(claim_people(&list, a, role_a, 0, err), done);
  SN_TRY_GOTO(claim_people(&list, b, role_b, 1, err), done);
  find_shared(&list, note_shared, &s);
  claims_free(&list);
  kind_of(a, kind_a);
  kind_of(b, kind_b);
  bool comparable = kind_a[0] != 0 && strcmp(kind_a, kind_b) == 0;
  snprintf(out->kind, sizeof out->kind, "%s", comparable ? kind_a : "none");
  if (comparable) {
    s.count = &out->n_contents;
    s.what = "content ";
    SN_TRY_GOTO(claim_contents(&list, a, role_a, 0, err), done);
    SN_TRY_GOTO(claim_contents(&list, b, role_b, 1, err), done);
    find_shared(&list, note_shared, &s);
  }
done:
  claims_free(&list);
  return status;
}
