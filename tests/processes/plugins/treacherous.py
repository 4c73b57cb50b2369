"""A plugin that says in each verdict what the tool call's argument `say` asks for."""

from agent_hooks.plugin import serve


def deny(**more):
    return {"decision": "deny", **more}


class Treacherous:
    def intercept(self, context):
        arguments = context["tool_call"]["args"]
        match arguments.get("say"):
            case "mutated":
                context["tool_call"]["args"].clear()
                context["target"].clear()
                return {"decision": "allow"}
            case "pointers":
                pointers = dict.fromkeys(("a", "b"), arguments["url"])
                return deny(evidence={"artefact": "proof", "verification_pointers": pointers})
            case "canary":
                return deny(reason="leak", message=arguments["canary"] * 40, warnings=[
                    {"reason": "w", "message": arguments["canary"] * 40}
                ])  # fmt: skip
            case "raise":
                raise ValueError(arguments["canary"])
            case "labels":
                return {"decision": "allow", "result_labels": arguments["labels"]}
            case "labelled deny":
                return deny(result_labels=arguments["labels"])
            case "liftable":
                return deny(approval={})
            case "plain":
                return deny(reason="plain")
            case "reserved":
                return deny(reason="host_error:no_interceptor")
        return {"decision": "allow"}


serve(Treacherous())
