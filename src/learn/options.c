/* options.c -- the tables of <kofn/options.h> for regressions and trainings,
 * and the checks by them.
 *
 * Owns nothing.  Ranges and defaults of single options are looked at here only;
 * what depends on several options is checked where they are used. */
#include "options.h"

#include "base/base.h"
#include "base/options.h"

#include <kofn/train.h>
#include <stddef.h>

_Static_assert(sizeof(kofn_loss) == sizeof(unsigned) &&
                   sizeof(kofn_optimizer) == sizeof(unsigned) &&
                   sizeof(kofn_line_search) == sizeof(unsigned) &&
                   sizeof(kofn_net_loss) == sizeof(unsigned) &&
                   sizeof(kofn_activation) == sizeof(unsigned),
               "choices are read and written as unsigned");

#define X(name, kind, zero, least, most, value, text)                          \
    {                                                                          \
        #name,                                                                 \
        KOFN_OPTION_##kind,                                                    \
        offsetof(OF, name),                                                    \
        zero,                                                                  \
        least,                                                                 \
        most,                                                                  \
        value,                                                                 \
        0,                                                                     \
        text},
#define OF kofn_regress_options
static const kofn_option regress[] = {KOFN_OPTIONS_OF_REGRESS(X)};
#undef OF
#define OF kofn_net_shape
static const kofn_option net[] = {KOFN_OPTIONS_OF_NET(X)};
#undef OF
#define OF kofn_train_options
static const kofn_option train[] = {KOFN_OPTIONS_OF_TRAIN(X)};
#undef OF
#undef X

#define COUNT(a) (sizeof(a) / sizeof *(a))

const kofn_option *kofn_option_in(kofn_option_table table, size_t i)
{
    switch (table) {
    case KOFN_TABLE_JOB:
        return kofn_option_at(i);
    case KOFN_TABLE_REGRESS:
        return i < COUNT(regress) ? &regress[i] : NULL;
    case KOFN_TABLE_NET:
        return i < COUNT(net) ? &net[i] : NULL;
    case KOFN_TABLE_TRAIN:
        return i < COUNT(train) ? &train[i] : NULL;
    }
    return NULL;
}

kofn_status kf_learn_settle(kofn_option_table table, void *o)
{
    const kofn_option *w;

    for (size_t i = 0; (w = kofn_option_in(table, i)); i++) {
        void *at = (char *)o + w->at;

        TRY(kf_option_check_by(w, at));
        kf_option_settle_by(w, at);
    }
    return KOFN_OK;
}
