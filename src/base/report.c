/* report.c -- reports of rounds added up.
 *
 * Owns nothing: both reports are the caller's.  Sums and largest values are
 * formed here and nowhere else, so that all totals agree. */
#include "report.h"

static double larger(double a, double b)
{
    return a > b ? a : b;
}

void kf_report_add(kofn_report *sum, const kofn_report *r)
{
    kofn_report was = *sum;

    *sum = *r;
    sum->rounds += was.rounds;
    sum->took += was.took;
    sum->encoding += was.encoding;
    sum->waiting += was.waiting;
    sum->decoding += was.decoding;
    sum->noise = larger(was.noise, r->noise);
    sum->predicted = larger(was.predicted, r->predicted);
    sum->joined += was.joined;
    sum->left += was.left;
    sum->late += was.late;
    sum->dropped += was.dropped;
    sum->messages += was.messages;
    sum->scalars += was.scalars;
    sum->corrupt += was.corrupt;
    if (was.rounds > was.unchecked && (was.liars < r->liars || r->unchecked))
        sum->liars = was.liars;
    sum->floor = larger(was.floor, r->floor);
    sum->again += was.again;
    sum->healed += was.healed;
    sum->drift = larger(was.drift, r->drift);
    sum->unchecked += was.unchecked;
    sum->sent += was.sent;
    sum->received += was.received;
    sum->plain += was.plain;
    sum->coded += was.coded;
    sum->number = 0;
}
