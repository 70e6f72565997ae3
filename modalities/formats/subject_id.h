/* Identifiers of persons that files state: kept only where they cannot be a name. */
#ifndef SN_MODALITIES_SUBJECT_ID_H
#define SN_MODALITIES_SUBJECT_ID_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the id is made from one of the names (n, entries may be NULL or ""): it contains one of at least three letters, or
 * is, or has as a word of its own, a shorter one; letter case of ASCII does not count. */
bool sn_subject_id_has_name(const char *id, const char *const *names, int64_t n);

/* Whether a text from a field that people fill in as they like looks like a code: letters, digits, '-', '_' and '.' alone, at least
 * one digit, and no date. */
bool sn_subject_id_is_code(const char *id);

/* Whether it has what codes never have and names do, '^' (DICOM's between the parts of a name) or ','; or is a date: three
 * numbers, or eight digits, that are day, month and year (1900 to 2099) in any of the usual orders, or "02-MAY-1951". */
bool sn_subject_id_is_personal(const char *id);

#endif
