/* plot.c -- draws curves or bars with axes, ticks, a legend and a title, in
 * plain SVG 1.1. Texts come from this program and contain no markup. */
#include "plot.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CURVES = 16, POINTS = 128, GROUPS = 24 };

/* Pixels, of 840 x 470: corner and sides of the plotting area. */
enum { LEFT = 70, TOP = 50, WIDE = 520, HIGH = 340 };
enum { BOTTOM = TOP + HIGH, LEGEND = LEFT + WIDE + 18 };

typedef struct curve {
    plot_style style;
    size_t colour, n, slot; /* slot: among the bars of a group */
    char name[48];
    double x[POINTS], y[POINTS], base[POINTS];
} curve;

typedef struct axis {
    double low, high, step; /* the ends are multiples of the step */
} axis;

struct plot {
    char title[3][100]; /* of the plot, of x, of y */
    char group[GROUPS][24];
    size_t groups, curves, slots;
    curve curve[CURVES];
    axis x, y; /* the axes; the file while it is written */
    FILE *f;
};

/* Colours of Okabe and Ito, which colour-blind readers can distinguish. */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73",
                                      "#cc79a7", "#e69f00", "#56b4e9",
                                      "#000000"};

plot *plot_new(void)
{
    return calloc(1, sizeof(plot));
}

#define FORMAT(into, text, ap)                                                 \
    (va_start(ap, text), vsnprintf(into, sizeof(into), text, ap), va_end(ap))

void plot_titles(plot *p, const char *x, const char *y, const char *title, ...)
{
    va_list ap;

    FORMAT(p->title[0], title, ap);
    snprintf(p->title[1], sizeof *p->title, "%s", x);
    snprintf(p->title[2], sizeof *p->title, "%s", y);
}

void plot_group(plot *p, const char *name, ...)
{
    va_list ap;

    if (p->groups < GROUPS)
        FORMAT(p->group[p->groups++], name, ap);
}

void plot_curve(plot *p, plot_style style, size_t colour, const char *name, ...)
{
    va_list ap;
    curve *c = &p->curve[p->curves < CURVES ? p->curves++ : CURVES - 1];

    p->slots += style == PLOT_BAR;
    *c = (curve){.style = style,
                 .colour = colour % (sizeof colours / sizeof *colours),
                 .slot = p->slots - 1};
    FORMAT(c->name, name, ap);
}

void plot_point(plot *p, double x, double y)
{
    curve *c = &p->curve[p->curves - 1];

    if (!isfinite(x) || !isfinite(y) || c->n == POINTS)
        return;
    c->base[c->n] = c->style == PLOT_ON ? c[-1].base[c->n] + c[-1].y[c->n] : 0;
    c->x[c->n] = x;
    c->y[c->n++] = y;
}

static axis round_up(double low, double high)
{
    double more = high > low ? high - low : 1,
           ten = pow(10, floor(log10(more / 6)));
    double r = more / 6 / ten, step;

    step = ten * (r > 5 ? 10 : r > 2 ? 5 : r > 1.001 ? 2 : 1);
    return (axis){floor(low / step + 1e-9) * step,
                  ceil((low + more) / step - 1e-9) * step, step};
}

static void find_axes(plot *p)
{
    axis x = {HUGE_VAL, -HUGE_VAL, 0}, y = x;

    for (const curve *c = p->curve; c < p->curve + p->curves; c++)
        for (size_t i = 0; i < c->n; i++) {
            x.low = fmin(x.low, c->x[i]);
            x.high = fmax(x.high, c->x[i]);
            y.low = fmin(y.low, p->groups ? 0 : c->y[i]);
            y.high = fmax(y.high, c->y[i] + c->base[i]);
        }
    p->y = round_up(y.low, y.high);
    p->x = p->groups ? (axis){-0.5, (double)p->groups - 0.5, 1}
                     : round_up(x.low, x.high);
}

static double right(const plot *p, double x)
{
    return LEFT + WIDE * (x - p->x.low) / (p->x.high - p->x.low);
}

static double down(const plot *p, double y)
{
    return TOP + HIGH * (p->y.high - y) / (p->y.high - p->y.low);
}

#define BOX "m0 -6h24v12h-24z" /* in the legend */
#define MIDDLE "text-anchor='middle'"

static void write_text(const plot *p, double x, double y, const char *more,
                       const char *text)
{
    fprintf(p->f, "<text x='%.1f' y='%.1f' %s>%s</text>\n", x, y, more, text);
}

/* Writes a number at each step: across, with a line, or below the axis. */
static void write_ticks(const plot *p, axis a, bool across)
{
    for (double at = a.low; at <= a.high + a.step / 2; at += a.step) {
        double v = fabs(at) < a.step / 2 ? 0 : at;
        double x = across ? LEFT : right(p, v),
               y = across ? down(p, v) : BOTTOM;
        char number[32];

        snprintf(number, sizeof number, "%g", v);
        fprintf(p->f, "<path d='M%.1f %.1f%s%d' stroke='%s'/>\n", x, y,
                across ? "h" : "v", across ? WIDE : 5,
                across ? "#ddd" : "#000");
        write_text(p, x - (across ? 8 : 0), y + (across ? 4 : 20),
                   across ? "text-anchor='end'" : MIDDLE, number);
    }
}

static void write_axes(const plot *p)
{
    write_ticks(p, p->y, true);
    if (!p->groups)
        write_ticks(p, p->x, false);
    for (size_t i = 0; i < p->groups; i++)
        write_text(p, right(p, (double)i), BOTTOM + 20,
                   MIDDLE " font-size='12'", p->group[i]);
    fprintf(p->f, "<path d='M%d %dv%dh%d' fill='none' stroke='#000'/>\n", LEFT,
            TOP, HIGH, WIDE);
    write_text(p, LEFT, 28, "font-size='16'", p->title[0]);
    write_text(p, LEFT + WIDE / 2.0, BOTTOM + 46, MIDDLE, p->title[1]);
    write_text(p, 20, 220, MIDDLE " transform='rotate(-90 20 220)'",
               p->title[2]);
}

/* How each style fills and outlines shapes, in a colour, and its legend entry.
 */
static const char *const looks[][2] = {
    {"fill='none' stroke-width='2' stroke='%s'", "h24"},
    {"fill='none' stroke-width='2' stroke-dasharray='6 4' stroke='%s'", "h24"},
    {"fill='#fff' stroke-width='1.5' stroke='%s'",
     "m8 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0"},
    {"fill='%s'", BOX},
    {"fill-opacity='0.45' fill='%s'", BOX},
    {"fill='none' stroke-dasharray='4 2' stroke='#000'", BOX}};

static void write_shape(const plot *p, const curve *c, size_t i)
{
    double wide = WIDE * 0.8 / (double)(p->groups * p->slots + !p->groups);
    double x = right(p, c->x[i]), y = down(p, c->base[i] + c->y[i]);

    if (c->style == PLOT_MARKS)
        fprintf(p->f, "<circle cx='%.2f' cy='%.2f' r='4'", x, y);
    else
        fprintf(p->f, "<rect x='%.2f' y='%.2f' width='%.2f' height='%.2f'",
                x + wide * ((double)c->slot - (double)p->slots / 2), y,
                wide * 0.94, down(p, c->base[i]) - y);
    fprintf(p->f, " data-x='%.17g' data-y='%.17g'/>\n", c->x[i], c->y[i]);
}

static void write_line(const plot *p, const curve *c)
{
    fputs("<polyline points='", p->f);
    for (size_t i = 0; i < c->n; i++)
        fprintf(p->f, "%.2f,%.2f ", right(p, c->x[i]), down(p, c->y[i]));
    fputs("' data-x='", p->f);
    for (size_t i = 0; i < c->n; i++)
        fprintf(p->f, "%.17g ", c->x[i]);
    fputs("' data-y='", p->f);
    for (size_t i = 0; i < c->n; i++)
        fprintf(p->f, "%.17g ", c->y[i]);
    fputs("'/>\n", p->f);
}

/* Writes a curve and its legend entry. */
static void write_curve(const plot *p, const curve *c)
{
    int y = TOP + 10 + 20 * (int)(c - p->curve);

    fprintf(p->f, "<g class='curve' data-name='%s' ", c->name);
    fprintf(p->f, looks[c->style][0], colours[c->colour]);
    fputs(">\n", p->f);
    if (c->style <= PLOT_DASHED)
        write_line(p, c);
    for (size_t i = 0; i < c->n && c->style > PLOT_DASHED; i++)
        write_shape(p, c, i);
    fputs("</g>\n<path ", p->f);
    fprintf(p->f, looks[c->style][0], colours[c->colour]);
    fprintf(p->f, " d='M%d %d%s'/>\n", LEGEND, y, looks[c->style][1]);
    write_text(p, LEGEND + 30, y + 4, "font-size='12'", c->name);
}

kofn_status plot_write(plot *p, const char *path)
{
    int bad;

    p->f = fopen(path, "w");
    if (!p->f)
        return papers_fail(KOFN_IO, "%s: %s", path, strerror(errno));
    find_axes(p);
    fputs("<svg xmlns='http://www.w3.org/2000/svg' version='1.1' width='840' "
          "height='470' font-family='sans-serif' font-size='13'>\n"
          "<rect width='100%' height='100%' fill='#fff'/>\n",
          p->f);
    write_axes(p);
    for (size_t i = 0; i < p->curves; i++)
        write_curve(p, &p->curve[i]);
    fputs("</svg>\n", p->f);
    bad = ferror(p->f);
    if (fclose(p->f) || bad)
        return papers_fail(KOFN_IO, "%s: %s", path, strerror(errno));
    return KOFN_OK;
}
