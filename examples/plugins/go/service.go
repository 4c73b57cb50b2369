package main

// The two services that make a program a plugin.

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "agent-hooks-example-egress/gen/agent_hooks/v1"
)

const (
	protocolVersion = 1
	spec            = "agent-hooks/0.1"
)

type plugin struct {
	pb.UnimplementedPluginServiceServer
	pb.UnimplementedInterceptorServiceServer
	policy atomic.Pointer[policy] // nil until Configure; calls are concurrent
	stop   func(grace time.Duration)
}

func (p *plugin) Describe(_ context.Context, req *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	if !slices.Contains(req.GetProtocolVersions(), protocolVersion) {
		return nil, status.Errorf(codes.FailedPrecondition,
			"the plugin speaks protocol version %d, the host %v", protocolVersion, req.GetProtocolVersions())
	}
	schema := configSchema
	return &pb.DescribeResponse{
		Name:             "egress",
		Version:          "0.1.0",
		ProtocolVersion:  protocolVersion,
		Specs:            []string{spec},
		Kind:             pb.PluginKind_PLUGIN_KIND_INTERCEPTOR,
		Points:           []pb.InterceptionPoint{pb.InterceptionPoint_INTERCEPTION_POINT_PRE_TOOL_CALL},
		ConfigSchemaJson: &schema,
		MaxConcurrency:   64,
	}, nil
}

func (p *plugin) Configure(_ context.Context, req *pb.ConfigureRequest) (*pb.ConfigureResponse, error) {
	parsed, faults := parsePolicy(req.GetConfigJson())
	if len(faults) > 0 {
		return nil, status.Error(codes.InvalidArgument, strings.Join(faults, "\n"))
	}
	// The host starts a new process for a new configuration.
	if !p.policy.CompareAndSwap(nil, parsed) {
		return nil, status.Error(codes.FailedPrecondition, "already configured")
	}
	return &pb.ConfigureResponse{}, nil
}

func (p *plugin) Shutdown(_ context.Context, req *pb.ShutdownRequest) (*pb.ShutdownResponse, error) {
	grace := min(max(req.GetGraceMs(), 100), 60_000)
	go p.stop(time.Duration(grace) * time.Millisecond) // Waits for this very call, so the reply gets out.
	return &pb.ShutdownResponse{}, nil
}

// Intercept judges one context. The host denies on any error, so an error is
// the right answer to whatever this plugin can't judge.
func (p *plugin) Intercept(_ context.Context, req *pb.InterceptRequest) (*pb.InterceptResponse, error) {
	configured := p.policy.Load()
	if configured == nil {
		return nil, status.Error(codes.FailedPrecondition, "not configured yet")
	}
	agent := req.GetContext()
	if agent.GetInterceptionPoint() != pb.InterceptionPoint_INTERCEPTION_POINT_PRE_TOOL_CALL || agent.GetToolCall() == nil {
		return nil, status.Error(codes.InvalidArgument, "not a tool call that is about to be made")
	}
	texts := []string{agent.GetToolCall().GetArgsJson()}
	if agent.TargetJson != nil { // Sent only where the target is not the arguments.
		texts = append(texts, agent.GetTargetJson())
	}
	verdict, err := judge(agent.GetToolCall().GetName(), configured, texts...)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return &pb.InterceptResponse{Verdict: verdict}, nil
}
