/* csv.h -- a table in text: how it is written, its fields and its rows.
 *
 * A kf_table is a struct of the caller's and points into the text, which must
 * outlive it. */
#ifndef KF_CSV_H
#define KF_CSV_H

#include "io.h"
#include "text.h"

#define KF_NO_MARK '\n' /* one field a line */
#define KF_BLANKS ' '

typedef struct kf_table {
    char mark;     /* between fields; KF_NO_MARK, KF_BLANKS or the character */
    bool trailing; /* every row ends in a mark */
    bool infinite; /* infinities are numbers */
    kf_text names; /* the line of names; at == NULL: there is none */
    size_t cols;
    size_t first;          /* the line that said how many */
    size_t comma, point;   /* lines of the first decimal ones; 0: none */
    const char *from, *to; /* the number with the first decimal comma */
    bool decimal;          /* some comma cannot be one that groups digits */
} kf_table;

typedef struct kf_field {
    const char *from, *to;
    bool more; /* another follows on the line */
} kf_field;

/* To the next line with fields. */
bool kf_csv_next(const kf_table *tb, kf_text *t);

/* The next field of the line.  Among names # is a letter as others are. */
kofn_status kf_csv_field(const kf_table *tb, kf_text *t, size_t column,
                         bool names, kf_field *f);
kf_scan kf_csv_scan(const kf_table *tb, const kf_field *f, double *value);

/* Reads one row into out; when that is NULL the row is checked, and how
 * decimals are written is noted. */
kofn_status kf_csv_row(kf_table *tb, kf_text *t, double *out);

/* Finds the name of a column, counted from 1.  False if it has none. */
bool kf_csv_name(const kf_table *tb, size_t column, kf_field *f);

/* When all rows were checked: are the commas in numbers decimal ones? */
kofn_status kf_csv_check_commas(const kf_table *tb);

/* How the table is written, from its first lines; *t moves to the first row of
 * numbers.  A file without any row is left for the caller to find. */
kofn_status kf_csv_tell(kf_table *tb, kf_text *t);

#endif
