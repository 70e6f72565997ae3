/* Identifiers of persons that files state: kept only where they cannot be a name. */
#ifndef SN_MODALITIES_SUBJECT_ID_H
#define SN_MODALITIES_SUBJECT_ID_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the id is made from one of the names (n, entries may be NULL or ""): it contains one of at least three letters, or
 * is, or has as a word of its own, a shorter one; letter case of ASCII does not count. */
bool sn_subject_id_has_name(const char *id, const char *const *names, int64_t n);

/* Whether a text from a field that people fill in as they like looks like a code: letters, digits, '-', '_' and '.' alone, at least
 * one digit. */
bool sn_subject_id_is_code(const char *id);

#endif
