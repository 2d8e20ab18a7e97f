/* number.h -- numbers as text, with a point whatever the program's locale says.
 *
 * A program that loads the library may have set LC_NUMERIC, as by
 * setlocale(LC_ALL, ""). Then strtod and printf take and write a comma.  These
 * functions do not, in files, in options and in messages alike; they change
 * nothing of the process, nor anything of the thread when they return. */
#ifndef KF_NUMBER_H
#define KF_NUMBER_H

#include "base/base.h"

#include <stdio.h>

/* strtod as in the C locale. */
double kf_read_real(const char *text, char **end);
/* snprintf, vsnprintf and fprintf as in the C locale. */
int kf_format(char *out, size_t room, const char *fmt, ...) KF_PRINTF(3, 4);
int kf_vformat(char *out, size_t room, const char *fmt, va_list ap)
    KF_PRINTF(3, 0);
int kf_fformat(FILE *f, const char *fmt, ...) KF_PRINTF(2, 3);

#endif
