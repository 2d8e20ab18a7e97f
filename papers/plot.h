/* plot.h -- draws curves or bars, with axes and a legend, as SVG. */
#ifndef PAPERS_PLOT_H
#define PAPERS_PLOT_H

#include "papers.h"

typedef enum plot_style {
    PLOT_LINE,
    PLOT_DASHED,
    PLOT_MARKS,  /* points without a line */
    PLOT_BAR,    /* next to the other bars of its group */
    PLOT_ON,     /* stacked on the bars before, in the same groups */
    PLOT_OUTLINE /* outline around that bar, from zero: the published value */
} plot_style;

typedef struct plot plot;

/* Returns an empty plot, freed by the caller with free(); NULL if memory runs
 * out. */
plot *plot_new(void);
/* Sets the titles of the axes and of the plot; the last is a format. */
void plot_titles(plot *p, const char *x, const char *y, const char *title, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds a label under bars; the next group of bars gets it. The first group is
 * at 0 on the x axis. */
void plot_group(plot *p, const char *name, ...)
    __attribute__((format(printf, 2, 3)));
/* Begins a curve, or a series of bars over all groups; the next points belong
 * to it. Equal `colour` numbers give equal colours. */
void plot_curve(plot *p, plot_style style, size_t colour, const char *name, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds a point; points that are not finite are left out. */
void plot_point(plot *p, double x, double y);
/* Writes the file. Each curve is a <g class='curve' data-name='..'>. Its
 * lines, marks or bars carry their values in data-x and data-y. Fails with
 * KOFN_IO if the file cannot be written. */
kofn_status plot_write(plot *p, const char *path);

#endif
