package main

// The configuration: JSON text in, a policy or the list of what is wrong out.

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// configSchema tells the host what Configure takes.
const configSchema = `{
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "properties": {
    "allow_hosts": {
      "description": "A host, or *.example.com for the subdomains of example.com without itself.",
      "type": "array", "items": {"type": "string", "minLength": 1}, "default": []
    },
    "on_violation": {"enum": ["deny", "escalate"], "default": "deny"}
  },
  "additionalProperties": false
}`

// A policy says which hosts are allowed. The zero policy allows none.
type policy struct {
	hosts    map[string]bool // in normal form
	suffixes []string        // ".example.com" for "*.example.com"
	escalate bool            // deny, but let an approval lift it
}

func (p *policy) allows(host string) bool {
	return p.hosts[host] || slices.ContainsFunc(p.suffixes, func(suffix string) bool {
		return strings.HasSuffix(host, suffix)
	})
}

// parsePolicy returns the faults as "<JSON pointer>: <problem>", never with a
// value. Decoding into a struct is not strict enough: even under
// DisallowUnknownFields it takes "Allow_Hosts" and null, and stops at the first
// fault without saying where it is.
func parsePolicy(text string) (*policy, []string) {
	var members map[string]any
	if err := json.Unmarshal([]byte(text), &members); err != nil || members == nil {
		return nil, []string{": not a JSON object"}
	}
	p := &policy{hosts: map[string]bool{}}
	var faults []string
	fault := func(pointer, problem string) { faults = append(faults, pointer+": "+problem) }
	for name, value := range members {
		switch name {
		case "allow_hosts":
			entries, isArray := value.([]any)
			if !isArray {
				fault("/allow_hosts", "not an array")
			}
			for i, entry := range entries {
				if s, isString := entry.(string); !isString || !p.add(s) {
					fault(fmt.Sprintf("/allow_hosts/%d", i), "neither a host nor *. and a domain name; no scheme, port or path")
				}
			}
		case "on_violation":
			if value != "deny" && value != "escalate" {
				fault("/on_violation", `neither "deny" nor "escalate"`)
			}
			p.escalate = value == "escalate"
		default:
			fault("/"+strings.NewReplacer("~", "~0", "/", "~1").Replace(name), "unknown member")
		}
	}
	slices.Sort(faults)
	return p, faults
}

// add takes one entry of allow_hosts.
func (p *policy) add(entry string) bool {
	if ip, err := netip.ParseAddr(entry); err == nil && ip.Is6() {
		entry = "[" + entry + "]" // Both forms of an IPv6 address are welcome here.
	}
	domain, wildcard := strings.CutPrefix(entry, "*.")
	host, ok := normalHost(domain)
	if _, err := netip.ParseAddr(host); wildcard && err == nil {
		return false
	}
	switch {
	case !ok:
		return false
	case wildcard:
		p.suffixes = append(p.suffixes, "."+host)
	default:
		p.hosts[host] = true
	}
	return true
}
