/* chart.c -- draws curves or bars as SVG, for kofn compare and kofn sweep.
 *
 * Points carry their values as titles, which browsers show. */
#include "trials.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Pixels. */
enum { LEFT = 80, TOP = 44, WIDE = 480, HIGH = 300, BAR = 26, NAMES = 230 };

/* Colours of Okabe and Ito, which colour-blind readers can distinguish. */
static const char *const colour[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                     "#e69f00", "#56b4e9", "#666666"};
enum { COLOURS = sizeof colour / sizeof *colour };

typedef struct axis {
    double low, high, step;
} axis;

static void text(FILE *f, const char *s)
{
    for (; *s; s++)
        switch (*s) {
        case '<':
            fputs("&lt;", f);
            break;
        case '&':
            fputs("&amp;", f);
            break;
        case '>':
            fputs("&gt;", f);
            break;
        default:
            if ((unsigned char)*s >= ' ')
                fputc(*s, f);
        }
}

static void label(FILE *f, double x, double y, const char *anchor,
                  const char *s)
{
    fprintf(f, "<text x='%.1f' y='%.1f' text-anchor='%s'>", x, y, anchor);
    text(f, s);
    fputs("</text>\n", f);
}

/* Rounds the ends of an axis to a step of 1, 2 or 5 times a power of ten. */
static axis axis_of(double low, double high)
{
    double raw, power;
    axis a;

    if (!(high > low))
        high = low + (low == 0 ? 1 : fabs(low) / 2);
    raw = (high - low) / 5;
    power = pow(10, floor(log10(raw)));
    a.step = power * (raw <= power       ? 1
                      : raw <= 2 * power ? 2
                      : raw <= 5 * power ? 5
                                         : 10);
    a.low = floor(low / a.step) * a.step;
    a.high = ceil(high / a.step) * a.step;
    return a;
}

static axis spread_of(const chart *c, bool of_x)
{
    double low = HUGE_VAL, high = -HUGE_VAL;

    for (size_t k = 0; k < c->curves; k++)
        for (size_t i = 0; i < c->curve[k].count; i++) {
            double v = of_x ? c->curve[k].x[i] : c->curve[k].y[i];

            low = isfinite(v) ? fmin(low, v) : low;
            high = isfinite(v) ? fmax(high, v) : high;
        }
    if (low > high)
        low = high = 0;
    return axis_of(of_x ? low : fmin(low, 0), high);
}

static void begin(FILE *f, const chart *c, double wide, double high)
{
    fprintf(f,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%.0f' "
            "height='%.0f' viewBox='0 0 %.0f %.0f' font-family='sans-serif' "
            "font-size='12'>\n<rect width='100%%' height='100%%' "
            "fill='white'/>\n",
            wide, high, wide, high);
    fputs("<g font-size='14' font-weight='bold'>", f);
    label(f, 12, 22, "start", c->title);
    fputs("</g>\n", f);
}

/* ---- bars ---------------------------------------------------------------- */

static void bars(FILE *f, const chart *c)
{
    double most = 0, high = TOP + BAR * (double)c->curves + 40;

    for (size_t k = 0; k < c->curves; k++)
        most = fmax(most, isfinite(c->curve[k].y[0]) ? c->curve[k].y[0] : 0);
    begin(f, c, NAMES + WIDE + 90, high);
    for (size_t k = 0; k < c->curves; k++) {
        double y = c->curve[k].y[0], at = TOP + BAR * (double)k;
        double wide = isfinite(y) && most > 0 ? WIDE * y / most : 0;
        char value[40];

        label(f, NAMES - 8, at + 16, "end", c->curve[k].name);
        fprintf(f,
                "<rect class='bar' x='%d' y='%.0f' width='%.1f' height='%d' "
                "fill='%s'/>\n",
                NAMES, at + 3, wide, BAR - 8, colour[k % COLOURS]);
        snprintf(value, sizeof value, "%.3g", y);
        label(f, NAMES + wide + 6, at + 16, "start",
              isfinite(y) ? value : "failed");
    }
    label(f, NAMES, high - 12, "start", c->y);
}

/* ---- curves -------------------------------------------------------------- */

static double place(const axis *a, double v, double from, double to)
{
    return from + (v - a->low) / (a->high - a->low) * (to - from);
}

static void grid(FILE *f, const chart *c, const axis *x, const axis *y)
{
    char value[40];

    for (double v = y->low; v <= y->high + y->step / 2; v += y->step) {
        double at = place(y, v, TOP + HIGH, TOP);

        fprintf(f,
                "<line x1='%d' y1='%.1f' x2='%d' y2='%.1f' stroke='#ddd'/>\n",
                LEFT, at, LEFT + WIDE, at);
        snprintf(value, sizeof value, "%.3g",
                 fabs(v) < 1e-12 * y->high ? 0 : v);
        label(f, LEFT - 6, at + 4, "end", value);
    }
    for (double v = x->low; v <= x->high + x->step / 2; v += x->step) {
        snprintf(value, sizeof value, "%.4g", v);
        label(f, place(x, v, LEFT, LEFT + WIDE), TOP + HIGH + 18, "middle",
              value);
    }
    label(f, LEFT + WIDE / 2.0, TOP + HIGH + 38, "middle", c->x);
    label(f, LEFT - 66, TOP - 12, "start", c->y);
}

static void curve(FILE *f, const chart *c, size_t k, const axis *x,
                  const axis *y)
{
    const chart_curve *u = &c->curve[k];
    const char *in = colour[k % COLOURS];
    bool began = false;

    fprintf(f, "<g class='curve' stroke='%s' fill='%s'>\n<path fill='none' d='",
            in, in);
    for (size_t i = 0; i < u->count; i++) {
        bool gap = !isfinite(u->y[i]);

        if (!gap)
            fprintf(f, "%c%.1f %.1f", began ? 'L' : 'M',
                    place(x, u->x[i], LEFT, LEFT + WIDE),
                    place(y, u->y[i], TOP + HIGH, TOP));
        began = !gap;
    }
    fputs("'/>\n", f);
    for (size_t i = 0; i < u->count; i++)
        if (isfinite(u->y[i]))
            fprintf(f,
                    "<circle cx='%.1f' cy='%.1f' r='3'><title>%.6g: "
                    "%.6g</title></circle>\n",
                    place(x, u->x[i], LEFT, LEFT + WIDE),
                    place(y, u->y[i], TOP + HIGH, TOP), u->x[i], u->y[i]);
    fputs("</g>\n", f);
    if (c->curves > 1 || u->name[0]) {
        double at = TOP + 8 + 18 * (double)k;

        fprintf(f, "<rect x='%d' y='%.0f' width='12' height='4' fill='%s'/>\n",
                LEFT + WIDE + 14, at, in);
        label(f, LEFT + WIDE + 32, at + 6, "start", u->name);
    }
}

static void curves(FILE *f, const chart *c)
{
    axis x = spread_of(c, true), y = spread_of(c, false);
    double high = fmax(TOP + HIGH + 50, TOP + 18 * (double)c->curves + 20);

    begin(f, c, LEFT + WIDE + 260, high);
    grid(f, c, &x, &y);
    for (size_t k = 0; k < c->curves; k++)
        curve(f, c, k, &x, &y);
}

int chart_write(const chart *c, const char *path)
{
    FILE *f = fopen(path, "w");
    bool bad;

    if (!f)
        return cli_say(EXIT_FAILED, "cannot write %s: %s", path,
                       strerror(errno));
    if (c->bars)
        bars(f, c);
    else
        curves(f, c);
    fputs("</svg>\n", f);
    bad = ferror(f);
    if (fclose(f) || bad)
        return cli_say(EXIT_FAILED, "cannot write %s: %s", path,
                       strerror(errno));
    return 0;
}
