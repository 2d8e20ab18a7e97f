"""k8s.py -- checks the structure of Kubernetes objects by the rules of the API that
matter here: names of fields, and what has to be together."""
import sys

import yaml

ANY = None  # any value
PROBE = {"tcpSocket": {"port": ANY}, "periodSeconds": ANY, "failureThreshold": ANY}
SECURITY = {"runAsNonRoot": ANY, "runAsUser": ANY, "runAsGroup": ANY, "fsGroup": ANY,
            "seccompProfile": {"type": ANY}}
CONTAINER = {
    "name": ANY, "image": ANY, "command": ANY, "args": ANY,
    "ports": [{"containerPort": ANY}], "startupProbe": PROBE,
    "resources": {"requests": ANY, "limits": ANY},
    "securityContext": {"allowPrivilegeEscalation": ANY, "readOnlyRootFilesystem": ANY,
                        "capabilities": {"drop": ANY}},
    "volumeMounts": [{"name": ANY, "mountPath": ANY, "readOnly": ANY}]}
POD = {"restartPolicy": ANY, "securityContext": SECURITY, "containers": [CONTAINER],
       "terminationGracePeriodSeconds": ANY, "nodeSelector": ANY,
       "tolerations": [{"key": ANY, "operator": ANY}],
       "volumes": [{"name": ANY, "persistentVolumeClaim": {"claimName": ANY},
                    "secret": {"secretName": ANY, "defaultMode": ANY}}]}
JOB = {"backoffLimit": ANY, "backoffLimitPerIndex": ANY, "parallelism": ANY,
       "completions": ANY, "completionMode": ANY,
       "successPolicy": {"rules": [{"succeededCount": ANY}]},
       "podFailurePolicy": {"rules": [{"action": ANY,
                                       "onPodConditions": [{"type": ANY}]}]},
       "template": {"metadata": {"labels": ANY}, "spec": POD}}
SPEC = {
    ("batch/v1", "Job"): JOB,
    ("v1", "Service"): {"clusterIP": ANY, "publishNotReadyAddresses": ANY,
                        "selector": ANY, "ports": [{"port": ANY}]},
    ("policy/v1", "PodDisruptionBudget"): {"maxUnavailable": ANY, "minAvailable": ANY,
                                           "selector": {"matchLabels": ANY}}}


def fields(value, known, where):
    """Refuses fields that the API does not have at this place."""
    if isinstance(known, list):
        for i, item in enumerate(value):
            fields(item, known[0], f"{where}[{i}]")
    elif known is not ANY:
        for name in value:
            assert name in known, f"{where} has no field {name}"
            fields(value[name], known[name], f"{where}.{name}")


def job(o):
    spec = o["spec"]
    pod = spec["template"]["spec"]
    mounts = {v["name"] for v in pod["volumes"]}
    assert pod["restartPolicy"] in ("Never", "OnFailure"), "restartPolicy of a job"
    if "successPolicy" in spec or "backoffLimitPerIndex" in spec:
        assert spec.get("completionMode") == "Indexed", "only Indexed jobs have that"
    for rule in spec.get("successPolicy", {}).get("rules", []):
        assert 0 < rule["succeededCount"] <= spec["completions"], "succeededCount"
    if "backoffLimitPerIndex" in spec or "podFailurePolicy" in spec:
        assert pod["restartPolicy"] == "Never", "such a job never restarts containers"
    assert pod["securityContext"]["runAsNonRoot"] is True
    for c in pod["containers"]:
        own = c["securityContext"]
        assert own["readOnlyRootFilesystem"] is True
        assert own["allowPrivilegeEscalation"] is False
        assert c["resources"]["requests"] and c["resources"]["limits"]["memory"]
        assert {m["name"] for m in c["volumeMounts"]} == mounts, "mounts and volumes"
        grace = [a for a in c["args"] if a.startswith("--grace=")]
        if grace:
            assert pod["terminationGracePeriodSeconds"] > float(grace[0][8:])
    return spec["template"]["metadata"]["labels"]


def check(text):
    objects = list(yaml.safe_load_all(text))
    for o in objects:
        known = SPEC[o["apiVersion"], o["kind"]]
        fields(o, {"apiVersion": ANY, "kind": ANY, "metadata": {"name": ANY},
                   "spec": known}, o["kind"])
    of = lambda kind: [o for o in objects if o["kind"] == kind]
    labels = [job(o) for o in of("Job")]
    budgets = of("PodDisruptionBudget")
    for o in budgets:
        assert ("minAvailable" in o["spec"]) != ("maxUnavailable" in o["spec"])
        assert o["spec"]["selector"]["matchLabels"] in labels, "a budget of no pods"
    for o in of("Service"):
        assert o["spec"]["selector"] in labels, "a service of no pods"
    assert len(labels) == len(budgets) == 2 and len(of("Service")) == 1


if __name__ == "__main__":
    given = open(sys.argv[1]).read()
    check(given)
    # a wrong name or value must be found
    for right, wrong in (("succeededCount", "succededCount"), ("Indexed", "NonIndexed"),
                         ("succeededCount: 1", "succeededCount: 9"),
                         ("readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false"),
                         ("minAvailable", "minAvailabel"), ("--grace=20", "--grace=40"),
                         ("failureThreshold", "failureTreshold")):
        assert right in given, right
        try:
            check(given.replace(right, wrong))
        except AssertionError:
            continue
        raise SystemExit(f"{wrong} was not found")
