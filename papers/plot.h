/* plot.h -- a picture of curves or bars, with axes and a legend, as SVG. */
#ifndef PAPERS_PLOT_H
#define PAPERS_PLOT_H

#include "papers.h"

typedef enum plot_style {
    PLOT_LINE,
    PLOT_DASHED,
    PLOT_MARKS,  /* points without a line                             */
    PLOT_BAR,    /* beside the other bars of its group                */
    PLOT_ON,     /* on the bars before, which are in the same groups  */
    PLOT_OUTLINE /* around that bar, from zero: what was published     */
} plot_style;

typedef struct plot plot;

/* For free(); NULL when there is no memory. */
plot *plot_new(void);
/* Of the axes, and of all, which is a format. */
void plot_titles(plot *p, const char *x, const char *y, const char *title, ...)
    __attribute__((format(printf, 4, 5)));
/* A label under bars; the next group of bars has it.  The first is 0 on the x
 * axis. */
void plot_group(plot *p, const char *name, ...)
    __attribute__((format(printf, 2, 3)));
/* A curve, or bars of all groups, to which the points go that follow.  Colours
 * of equal number are equal. */
void plot_curve(plot *p, plot_style style, size_t colour, const char *name, ...)
    __attribute__((format(printf, 4, 5)));
/* One that is not finite is left out. */
void plot_point(plot *p, double x, double y);
/* Each curve is a <g class='curve' data-name='..'> whose lines, marks or bars
 * say what they are of in data-x and data-y.  KOFN_IO where the file cannot be
 * written. */
kofn_status plot_write(plot *p, const char *path);

#endif
