/* plot.c -- a picture of curves or bars, with axes, ticks, a legend and a title, in
 * plain SVG 1.1. */
#include "plot.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CURVES 16
#define POINTS 128
#define GROUPS 24

/* Pixels: the picture, the corner and the sides of what the axes enclose. */
enum { WIDTH = 840, HEIGHT = 470, LEFT = 70, TOP = 50, WIDE = 520, HIGH = 340 };
enum { LEGEND = LEFT + WIDE + 18, ROW = 20 };

typedef struct curve {
    plot_style style;
    size_t colour, n, slot; /* slot: of the bars of a group */
    char name[48];
    double x[POINTS], y[POINTS];
} curve;

struct plot {
    char title[120], x_title[80], y_title[80];
    char group[GROUPS][24];
    size_t groups, curves, slots;
    curve curve[CURVES];
};

/* Of Okabe and Ito, which the colour-blind tell apart, too. */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73",
                                      "#cc79a7", "#e69f00", "#56b4e9",
                                      "#000000", "#8c6d31"};

/* ---- what is drawn ------------------------------------------------------- */

plot *plot_new(void)
{
    return calloc(1, sizeof(plot));
}

void plot_titles(plot *p, const char *title, const char *x, const char *y)
{
    snprintf(p->title, sizeof p->title, "%s", title);
    snprintf(p->x_title, sizeof p->x_title, "%s", x);
    snprintf(p->y_title, sizeof p->y_title, "%s", y);
}

void plot_group(plot *p, const char *name)
{
    if (p->groups < GROUPS)
        snprintf(p->group[p->groups++], sizeof *p->group, "%s", name);
}

void plot_curve(plot *p, plot_style style, size_t colour, const char *name)
{
    curve *c = &p->curve[p->curves < CURVES ? p->curves++ : CURVES - 1];

    if (colour == PLOT_NEXT)
        colour = (size_t)(c - p->curve);
    p->slots += style == PLOT_BAR;
    *c = (curve){.style = style,
                 .colour = colour % (sizeof colours / sizeof *colours),
                 .slot = p->slots - 1};
    snprintf(c->name, sizeof c->name, "%s", name);
}

void plot_point(plot *p, double x, double y)
{
    curve *c = &p->curve[p->curves - 1];

    if (!isfinite(x) || !isfinite(y) || c->n == POINTS)
        return;
    c->x[c->n] = x;
    c->y[c->n++] = y;
}

/* ---- axes ---------------------------------------------------------------- */

/* What an axis shows: a multiple of the step at each end. */
typedef struct axis {
    double low, high, step;
} axis;

static axis axis_for(double low, double high)
{
    double raw = high > low ? (high - low) / 6 : 1,
           ten = pow(10, floor(log10(raw))), step = ten;

    step *= raw <= 1.001 * ten ? 1
            : raw <= 2 * ten   ? 2
            : raw <= 5 * ten   ? 5
                               : 10;
    return (axis){floor(low / step + 1e-9) * step,
                  ceil(high / step - 1e-9) * step, step};
}

static void widen(axis *a, double x)
{
    a->low = fmin(a->low, x);
    a->high = fmax(a->high, x);
}

/* Where bar i of a curve begins: on the bars below it, or at zero. */
static double base_of(const curve *c, size_t i)
{
    double base = 0;

    if (c->style != PLOT_ON)
        return 0;
    for (const curve *below = c - 1;; below--) {
        for (size_t k = 0; k < below->n; k++)
            base += below->x[k] == c->x[i] && below->style != PLOT_OUTLINE
                        ? below->y[k]
                        : 0;
        if (below->style == PLOT_BAR)
            return base;
    }
}

static void find_axes(const plot *p, axis *x, axis *y)
{
    *x = *y = (axis){HUGE_VAL, -HUGE_VAL, 0};
    for (const curve *c = p->curve; c < p->curve + p->curves; c++)
        for (size_t i = 0; i < c->n; i++) {
            widen(x, c->x[i]);
            widen(y, c->y[i] + base_of(c, i));
        }
    if (p->groups)
        widen(y, 0);
    *x = axis_for(x->low, x->high);
    *y = axis_for(y->low, y->high);
    if (p->groups)
        *x = (axis){-0.5, (double)p->groups - 0.5, 1};
}

static double right(axis a, double x)
{
    return LEFT + WIDE * (x - a.low) / (a.high - a.low);
}

static double down(axis a, double y)
{
    return TOP + HIGH * (a.high - y) / (a.high - a.low);
}

/* ---- SVG ----------------------------------------------------------------- */

static void escape(FILE *f, const char *text)
{
    for (; *text; text++)
        if (strchr("<>&\"", *text))
            fprintf(f, "&#%d;", *text);
        else
            fputc(*text, f);
}

/* anchor: start, middle or end of the text is there. */
static void write_text(FILE *f, double x, double y, const char *more,
                       const char *text)
{
    fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" %s>", x, y, more);
    escape(f, text);
    fputs("</text>\n", f);
}

static void write_axes(FILE *f, const plot *p, axis x, axis y)
{
    char number[32];

    for (double at = y.low; at <= y.high + y.step / 2; at += y.step) {
        double v = fabs(at) < y.step / 2 ? 0 : at;

        snprintf(number, sizeof number, "%g", v);
        fprintf(f, "<path d=\"M%d %.1fh%d\" stroke=\"#ddd\"/>\n", LEFT,
                down(y, v), WIDE);
        write_text(f, LEFT - 8, down(y, v) + 4, "text-anchor=\"end\"", number);
    }
    for (double at = x.low; !p->groups && at <= x.high + x.step / 2;
         at += x.step) {
        double v = fabs(at) < x.step / 2 ? 0 : at;

        snprintf(number, sizeof number, "%g", v);
        fprintf(f, "<path d=\"M%.1f %dv5\" stroke=\"#000\"/>\n", right(x, v),
                TOP + HIGH);
        write_text(f, right(x, v), TOP + HIGH + 20, "text-anchor=\"middle\"",
                   number);
    }
    for (size_t i = 0; i < p->groups; i++)
        write_text(f, right(x, (double)i), TOP + HIGH + 20,
                   "text-anchor=\"middle\" font-size=\"12\"", p->group[i]);
    fprintf(f, "<path d=\"M%d %dv%dh%d\" fill=\"none\" stroke=\"#000\"/>\n",
            LEFT, TOP, HIGH, WIDE);
    write_text(f, LEFT, 28, "font-size=\"16\"", p->title);
    write_text(f, LEFT + WIDE / 2.0, TOP + HIGH + 46, "text-anchor=\"middle\"",
               p->x_title);
    write_text(f, 20, TOP + HIGH / 2.0,
               "text-anchor=\"middle\" transform=\"rotate(-90 20 220)\"",
               p->y_title);
}

/* How the shapes of a curve are filled and outlined. */
static void write_look(FILE *f, const curve *c)
{
    const char *colour = colours[c->colour];

    if (c->style == PLOT_OUTLINE)
        fprintf(f, "fill=\"none\" stroke=\"#000\" stroke-dasharray=\"4 2\"");
    else if (c->style == PLOT_MARKS)
        fprintf(f, "fill=\"#fff\" stroke=\"%s\" stroke-width=\"1.5\"", colour);
    else if (c->style <= PLOT_DASHED)
        fprintf(f, "fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s", colour,
                c->style == PLOT_DASHED ? " stroke-dasharray=\"6 4\"" : "");
    else
        fprintf(f, "fill=\"%s\" fill-opacity=\"%g\"", colour,
                c->style == PLOT_ON ? 0.45 : 1);
}

static void write_bar(FILE *f, const plot *p, const curve *c, size_t i, axis x,
                      axis y)
{
    double wide = WIDE / (double)p->groups * 0.8 / (double)p->slots,
           base = base_of(c, i),
           left = right(x, c->x[i]) +
                  wide * ((double)c->slot - (double)p->slots / 2);

    fprintf(f,
            "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" "
            "data-x=\"%g\" data-y=\"%.17g\"/>\n",
            left, down(y, base + c->y[i]), wide * 0.94,
            down(y, base) - down(y, base + c->y[i]), c->x[i], c->y[i]);
}

static void write_curve(FILE *f, const plot *p, const curve *c, axis x, axis y)
{
    fputs("<g class=\"curve\" data-name=\"", f);
    escape(f, c->name);
    fputs("\" ", f);
    write_look(f, c);
    fputs(">\n", f);
    if (c->style <= PLOT_DASHED) {
        fputs("<polyline points=\"", f);
        for (size_t i = 0; i < c->n; i++)
            fprintf(f, "%.2f,%.2f ", right(x, c->x[i]), down(y, c->y[i]));
        fputs("\" data-x=\"", f);
        for (size_t i = 0; i < c->n; i++)
            fprintf(f, "%.17g ", c->x[i]);
        fputs("\" data-y=\"", f);
        for (size_t i = 0; i < c->n; i++)
            fprintf(f, "%.17g ", c->y[i]);
        fputs("\"/>\n", f);
    }
    for (size_t i = 0; i < c->n && c->style > PLOT_DASHED; i++)
        if (c->style != PLOT_MARKS)
            write_bar(f, p, c, i, x, y);
        else
            fprintf(f,
                    "<circle cx=\"%.2f\" cy=\"%.2f\" r=\"4\" data-x=\"%.17g\" "
                    "data-y=\"%.17g\"/>\n",
                    right(x, c->x[i]), down(y, c->y[i]), c->x[i], c->y[i]);
    fputs("</g>\n", f);
}

static void write_legend(FILE *f, const plot *p)
{
    for (size_t i = 0; i < p->curves; i++) {
        const curve *c = &p->curve[i];
        int y = TOP + 10 + ROW * (int)i;

        if (c->style <= PLOT_DASHED)
            fprintf(f, "<path d=\"M%d %dh24\" ", LEGEND, y);
        else if (c->style == PLOT_MARKS)
            fprintf(f, "<circle cx=\"%d\" cy=\"%d\" r=\"4\" ", LEGEND + 12, y);
        else
            fprintf(f, "<rect x=\"%d\" y=\"%d\" width=\"24\" height=\"12\" ",
                    LEGEND, y - 6);
        write_look(f, c);
        fputs("/>\n", f);
        write_text(f, LEGEND + 30, y + 4, "font-size=\"12\"", c->name);
    }
}

kofn_status plot_write(const plot *p, const char *path)
{
    FILE *f = fopen(path, "w");
    axis x, y;
    bool bad;

    if (!f)
        return papers_fail(KOFN_IO, "%s: %s", path, strerror(errno));
    find_axes(p, &x, &y);
    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" "
            "width=\"%d\" height=\"%d\" font-family=\"sans-serif\" "
            "font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" "
            "fill=\"#fff\"/>\n",
            WIDTH, HEIGHT);
    write_axes(f, p, x, y);
    for (size_t i = 0; i < p->curves; i++)
        write_curve(f, p, &p->curve[i], x, y);
    write_legend(f, p);
    fputs("</svg>\n", f);
    bad = ferror(f);
    if (fclose(f) || bad)
        return papers_fail(KOFN_IO, "%s: %s", path, strerror(errno));
    return KOFN_OK;
}
