/* products.c -- the products of a step, one after the other.
 *
 * Owns codes and caches of the products, and the plans that read matrices; they
 * are the same for the whole run.  The caller's plans are borrowed. */
#include "node.h"

#include "code/operation.h"

#include <assert.h>

#define CACHE_BYTES ((size_t)64 << 20)
#define LEAST_GROUPS 2 /* if results are compared */

const kf_peer_product *kf_peer_product_of(const kf_node *n, uint64_t t)
{
    return &n->product[kf_course_product(&n->course, t)];
}

static uint64_t each_turn(const kf_course *c)
{
    assert(c->after < c->products);
    return c->products - c->after;
}

uint64_t kf_course_turn(const kf_course *c, uint64_t t)
{
    uint64_t turn = t / each_turn(c);

    return c->turns && turn > c->turns ? c->turns : turn;
}

uint64_t kf_course_end(const kf_course *c, uint64_t turn)
{
    return turn * each_turn(c);
}

size_t kf_course_product(const kf_course *c, uint64_t t)
{
    uint64_t each = each_turn(c);

    if (!c->turns || t / each < c->turns)
        return t % each;
    assert(c->after > 0);
    return each + (t - kf_course_end(c, c->turns)) % c->after;
}

/* ---- what a mesh can compute --------------------------------------------- */

static kofn_status check_use(const kofn_plan *p)
{
    const kofn_layout *L = &p->layout;

    if (p->op->factors != 1)
        return kf_fail(KOFN_UNSUITED,
                       "a mesh computes products with a matrix; the plan is "
                       "for %s",
                       p->op->name);
    if (L->groups != 1 || L->adjoint || L->whole || L->submessages != 1)
        return kf_fail(KOFN_UNSUITED,
                       "answers of scheme %s do not decode strip by strip from "
                       "any set of enough seats, which a mesh needs; use %s",
                       p->scheme->name, p->op->left ? "gpd" : "mds");
    return KOFN_OK;
}

static kofn_status check_product(const kofn_mesh_product *all, size_t i)
{
    const kofn_mesh_product *s = &all[i];

    if (!s->plan)
        return kf_fail(KOFN_INVAL, "product %zu has no plan", i);
    if (s->left && s->read)
        return kf_fail(KOFN_INVAL,
                       "product %zu both reads the matrix and is a left "
                       "product; choose one",
                       i);
    if (s->left && !s->plan->left)
        return kf_fail(KOFN_INVAL,
                       "product %zu is a left product, which its plan does not "
                       "serve; call kofn_plan_serve_left",
                       i);
    for (size_t j = 0; j < i; j++)
        if (all[j].operand == s->operand && all[j].plan != s->plan)
            return kf_fail(KOFN_INVAL,
                           "products %zu and %zu are of matrix %u and have two "
                           "plans for it",
                           j, i, s->operand);
    return check_use(kf_plan_use(s->plan, s->left));
}

kofn_status kf_node_products_check(const kofn_mesh_product *product,
                                   size_t products)
{
    if (products == 0)
        return kf_fail(KOFN_INVAL, "a mesh of 0 products computes nothing");
    for (size_t i = 0; i < products; i++)
        TRY(check_product(product, i));
    return KOFN_OK;
}

/* ---- the table ----------------------------------------------------------- */

/* True if nodes make at most a sixth more partial products with this number of
 * groups than with the finest ones.  `each` of the `nodes` nodes make every
 * group. */
static bool suffice(size_t groups, size_t each, size_t nodes)
{
    return 6 * kf_ceil_div(groups * each, nodes) * nodes <= 7 * groups * each;
}

/* Returns the number of groups if results are compared.  Nearly all nodes then
 * make every group, so finer groups save few partial products.  Each group
 * costs packets, a comparison and a decoding at all nodes. */
static size_t groups_compared(const kofn_plan *plan, size_t nodes,
                              kofn_errors errors)
{
    const kf_bounds p = kf_bounds_of(plan, 0, errors);
    const kf_voices all = {.one = 1, .all = nodes};
    size_t each = kf_min(nodes, p.surely + kf_bounds_vouch(&p, &all));
    size_t groups = kf_min(nodes, LEAST_GROUPS);

    assert(errors != KOFN_ERRORS_NONE);
    assert(each > 0);
    while (groups < nodes && !suffice(groups, each, nodes))
        groups++;
    return groups;
}

/* A matrix is read by the rows of its parts, as it is multiplied. */
size_t kf_node_groups(const kofn_mesh_product *product, size_t nodes,
                      kofn_errors errors)
{
    const kofn_plan *plan = kf_plan_use(product->plan, product->left);
    size_t groups = kf_min(nodes, KF_MAX_GROUPS);

    assert(product->plan);
    if (errors != KOFN_ERRORS_NONE)
        groups = kf_min(groups, groups_compared(plan, nodes, errors));
    return kf_max(1, kf_min(groups, plan->span));
}

static kofn_status products_new(kf_peer_product *s,
                                const kofn_mesh_product *from,
                                const kf_node_options *opt)
{
    if (from->read)
        TRY(kf_code_reader(&s->reader, from->plan));
    s->plan = from->read ? s->reader : kf_plan_use(from->plan, from->left);
    s->groups = kf_node_groups(from, opt->groups, opt->errors);
    assert(s->groups > 0);
    assert(s->groups <= KF_MAX_GROUPS);
    s->all = s->groups == 64 ? UINT64_MAX : kf_bit(s->groups) - 1;
    s->bounds = kf_bounds_of(s->plan, 0, opt->errors);
    s->silent = !kf_code_has_no_zero_result(s->plan, 0, s->plan->span - 1);
    TRY(kf_code_new(&s->code, s->plan));
    return kf_cache_new(&s->cache, s->code, CACHE_BYTES);
}

/* Returns how many partial products are needed.  A comparison needs more
 * partial products than surely decode.  With fewer, some partial products may
 * have no other to show that they are wrong. */
static size_t enough_for(const kf_peer_product *s)
{
    return s->bounds.errors == KOFN_ERRORS_NONE ? s->plan->layout.enough
                                                : s->bounds.surely;
}

kofn_status kf_peer_products_new(kf_node *n, const kofn_mesh_product *product,
                                 size_t products, const kf_node_options *opt)
{
    assert(!n->product);
    TRY(kf_node_products_check(product, products));
    if (opt->turns ? !opt->after || opt->after >= products : opt->after > 0)
        return kf_fail(
            KOFN_INVAL,
            "%zu of %zu products run once, after %llu turns of the "
            "others; give both kinds of products and turns, or neither",
            opt->after, products, (unsigned long long)opt->turns);
    TRY_ZERO(n->product, products);
    n->course = (kf_course){products, opt->turns, opt->after};
    n->on = n->product;
    n->max_seats = KF_MOST_LIVES; /* a hostile node may name any seat */
    for (size_t i = 0; i < products; i++) {
        TRY(products_new(&n->product[i], &product[i], opt));
        n->max_seats =
            kf_min(n->max_seats, n->product[i].plan->layout.max_seats);
        n->enough = kf_max(n->enough, enough_for(&n->product[i]));
    }
    return KOFN_OK;
}

kofn_status kf_peer_find_decoder(const kf_node *n, const uint32_t *seats,
                                 size_t count, bool whole, kf_answers *a)
{
    TRY(kf_answers_judge(n->on->cache, n->on->plan, seats, count,
                         n->opt.tolerance, a));
    if (whole && a->decoder && !a->decoder->whole)
        a->decoder = NULL;
    return KOFN_OK;
}

kofn_status kf_peer_members_decode(const kf_node *n, bool *decode)
{
    uint32_t *seat;
    kofn_status st = KOFN_OK;

    assert(n->in.members > 0);
    *decode = true;
    TRY_NEW(seat, n->in.members);
    for (size_t r = 0; r < n->in.members; r++)
        seat[r] = n->in.member[r].seat;
    for (size_t i = 0; i < n->course.products && *decode && !st; i++) {
        const kf_peer_product *s = &n->product[i];
        kf_answers a;

        st = kf_answers_judge(s->cache, s->plan, seat, n->in.members,
                              n->opt.tolerance, &a);
        *decode = !st && a.decoder && a.decoder->whole;
    }
    kf_free(seat);
    return st;
}

void kf_peer_products_trim(kf_node *n)
{
    for (size_t i = 0; i < n->course.products; i++)
        kf_cache_trim(n->product[i].cache);
}

void kf_peer_products_free(kf_node *n)
{
    for (size_t i = 0; i < n->course.products; i++) {
        kf_cache_free(n->product[i].cache);
        kf_code_free(n->product[i].code);
        kofn_plan_free(n->product[i].reader);
    }
    kf_free(n->product);
}

kf_cache *kf_node_cache(const kf_node *n)
{
    return n->on->cache;
}
