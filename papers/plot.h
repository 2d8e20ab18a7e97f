/* plot.h -- a picture of curves or bars, with axes and a legend, as SVG. */
#ifndef PAPERS_PLOT_H
#define PAPERS_PLOT_H

#include "papers.h"

typedef enum plot_style {
    PLOT_LINE,
    PLOT_DASHED,
    PLOT_MARKS,  /* points without a line                             */
    PLOT_BAR,    /* beside the other bars of its group                */
    PLOT_ON,     /* on the bar that was begun last                    */
    PLOT_OUTLINE /* around that bar, from zero: what was published     */
} plot_style;

/* A colour of its own. */
#define PLOT_NEXT SIZE_MAX

typedef struct plot plot;

/* For free(); NULL when there is no memory. */
plot *plot_new(void);
void plot_titles(plot *p, const char *title, const char *x, const char *y);
/* A label under bars; the next group of bars has it.  The first is 0 on the x axis. */
void plot_group(plot *p, const char *name);
/* A curve, or bars of all groups, to which the points go that follow.  Colours of equal
 * number are equal. */
void plot_curve(plot *p, plot_style style, size_t colour, const char *name);
/* One that is not finite is left out. */
void plot_point(plot *p, double x, double y);
/* Each curve is a <g class="curve" data-name=".."> whose lines, marks or bars say what
 * they are of in data-x and data-y.  KOFN_IO where the file cannot be written. */
kofn_status plot_write(const plot *p, const char *path);

#endif
