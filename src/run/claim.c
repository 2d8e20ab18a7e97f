/* claim.c -- the iterate of another, which a node has no means to check itself:
 * it is taken when enough others have the same.
 *
 * One is asked for the vector, all others for a fingerprint of theirs.  Each
 * gets a key of its own, which nobody else knows, so who makes up a vector
 * cannot make it fit the fingerprints of honest nodes; and with f hostile
 * nodes, f + 1 that agree are not all hostile.  Nodes go on in the meantime,
 * so that fingerprints may be of other iterates than the vector; then all are
 * asked again, by and by.
 */
#include "host.h"

static uint64_t print_of(uint64_t key, const double *scalar, const double *v,
                         size_t rows)
{
    uint64_t sum = kf_note_print(key, 1, scalar,
                                 KOFN_SCALARS * sizeof *scalar);

    return kf_note_print(key, sum, v, rows * sizeof *v);
}

uint64_t kf_claim_own(const kf_host *h, uint64_t key)
{
    return print_of(key, h->scalar, h->v->m.data, h->v->m.rows);
}

kofn_status kf_claim_ask(kf_host *h, kofn_life life, const kofn_note *ask)
{
    h->claim.asked = life;
    for (size_t i = 0; i < h->routes && h->confirm > 1; i++) {
        kf_route *r = &h->route[i];
        kofn_note note = *ask;

        if (r->life == 0 || r->life == life)
            continue;
        while (r->key == 0)
            TRY(kf_host_random(&r->key, sizeof r->key));
        note.coded = r->key;
        TRY(kf_mail_to(h, r->peer, &note));
    }
    return KOFN_OK;
}

void kf_claim_print(kf_route *r, const kofn_note *note)
{
    r->at = note->at;
    r->final = note->final;
    r->print = note->coded;
}

void kf_claim_vector(kf_host *h, const kofn_note *note, kofn_parcel *body)
{
    if (note->from != h->claim.asked || !body)
        return;
    kofn_parcel_drop(h->claim.body);
    h->claim.note = *note;
    h->claim.body = kofn_parcel_keep(body);
}

static bool confirms(const kf_host *h, const kf_route *r)
{
    const kf_claim *c = &h->claim;
    const double *body = c->body->m.data;

    return r->life && r->key && r->life != c->note.from &&
           r->at.t == c->note.at.t && r->at.line == c->note.at.line &&
           r->final == c->note.final &&
           r->print == print_of(r->key, body, body + KOFN_SCALARS,
                                h->v->m.rows);
}

bool kf_claim_ready(kf_host *h, kofn_note *note, kofn_parcel **body)
{
    size_t say = 1;

    if (!h->claim.body)
        return false;
    for (size_t i = 0; i < h->routes; i++)
        say += confirms(h, &h->route[i]);
    if (say < h->confirm)
        return false;
    *note = h->claim.note;
    *body = h->claim.body;
    h->claim.body = NULL;
    return true;
}

void kf_claim_drop(kf_host *h)
{
    kofn_parcel_drop(h->claim.body);
    h->claim = (kf_claim){0};
}
