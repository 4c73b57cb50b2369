package main

import (
	"bufio"
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	pb "agent-hooks-example-egress/gen/agent_hooks/v1"
)

// start serves the plugin in memory and returns a connection to it, a context
// with the token and a channel that closes when the server has ended.
func start(t *testing.T) (*grpc.ClientConn, context.Context, <-chan struct{}) {
	t.Helper()
	server, _ := newServer("right")
	listener := bufconn.Listen(1 << 20)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(listener); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:///plugin",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return conn, metadata.AppendToOutgoingContext(ctx, "agent-hooks-token", "right"), ended
}

func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if status.Code(err) != want {
		t.Fatalf("%v, want %v", err, want)
	}
}

func toolCall(argsJSON string) *pb.InterceptRequest {
	return &pb.InterceptRequest{Context: &pb.AgentContext{
		InterceptionPoint: pb.InterceptionPoint_INTERCEPTION_POINT_PRE_TOOL_CALL,
		ToolCall:          &pb.ToolCall{Name: "fetch", ArgsJson: argsJSON},
	}}
}

func TestLifeOfAPlugin(t *testing.T) {
	conn, ctx, ended := start(t)
	plugin, interceptor := pb.NewPluginServiceClient(conn), pb.NewInterceptorServiceClient(conn)

	_, err := plugin.Describe(ctx, &pb.DescribeRequest{ProtocolVersions: []int64{2, 3}})
	wantCode(t, err, codes.FailedPrecondition)
	if text := err.Error(); !strings.Contains(text, "1") || !strings.Contains(text, "[2 3]") {
		t.Errorf("%q does not name both sides' versions", text)
	}
	described, err := plugin.Describe(ctx, &pb.DescribeRequest{ProtocolVersions: []int64{2, 1}})
	wantCode(t, err, codes.OK)
	if described.GetProtocolVersion() != 1 || len(described.GetPoints()) != 1 {
		t.Errorf("%v", described)
	}

	_, err = interceptor.Intercept(ctx, toolCall(`{}`))
	wantCode(t, err, codes.FailedPrecondition)
	_, err = plugin.Configure(ctx, &pb.ConfigureRequest{ConfigJson: `{"allow_hosts": ["https://secret"], "x": 1}`})
	wantCode(t, err, codes.InvalidArgument)
	if text := status.Convert(err).Message(); strings.Contains(text, "secret") || strings.Count(text, "\n") != 1 {
		t.Errorf("faults %q", text)
	}
	_, err = plugin.Configure(ctx, &pb.ConfigureRequest{ConfigJson: `{"allow_hosts": ["good.example"]}`})
	wantCode(t, err, codes.OK)
	_, err = plugin.Configure(ctx, &pb.ConfigureRequest{ConfigJson: `{}`})
	wantCode(t, err, codes.FailedPrecondition)

	for argsJSON, want := range map[string]pb.Decision{
		`{"url": "https://good.example/"}`:                                      pb.Decision_DECISION_ALLOW,
		`{"url": "https://evil.example/"}`:                                      pb.Decision_DECISION_DENY,
		`{"text": "` + strings.Repeat("a", 10<<20) + ` https://evil.example/"}`: pb.Decision_DECISION_DENY,
	} {
		answer, err := interceptor.Intercept(ctx, toolCall(argsJSON))
		wantCode(t, err, codes.OK)
		if answer.GetVerdict().GetDecision() != want {
			t.Errorf("%.40s: %v", argsJSON, answer)
		}
	}
	other := toolCall(`{}`)
	other.Context.InterceptionPoint = pb.InterceptionPoint_INTERCEPTION_POINT_POST_TOOL_CALL
	for _, req := range []*pb.InterceptRequest{{}, other, toolCall(``)} {
		_, err = interceptor.Intercept(ctx, req)
		wantCode(t, err, codes.InvalidArgument)
	}

	_, err = plugin.Shutdown(ctx, &pb.ShutdownRequest{GraceMs: 5000})
	wantCode(t, err, codes.OK)
	<-ended
}

func TestEveryCallNeedsTheToken(t *testing.T) {
	conn, right, _ := start(t)
	health := healthpb.NewHealthClient(conn)
	answer, err := health.Check(right, &healthpb.HealthCheckRequest{})
	wantCode(t, err, codes.OK)
	if answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("%v", answer)
	}
	none := metadata.NewOutgoingContext(right, nil)
	for name, ctx := range map[string]context.Context{
		"none":  none,
		"empty": metadata.AppendToOutgoingContext(none, "agent-hooks-token", ""),
		"wrong": metadata.AppendToOutgoingContext(none, "agent-hooks-token", "wrong"),
		"two":   metadata.AppendToOutgoingContext(right, "agent-hooks-token", "wrong"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := pb.NewPluginServiceClient(conn).Describe(ctx, &pb.DescribeRequest{ProtocolVersions: []int64{1}})
			wantCode(t, err, codes.Unauthenticated)
			_, err = pb.NewInterceptorServiceClient(conn).Intercept(ctx, toolCall(`{}`))
			wantCode(t, err, codes.Unauthenticated)
			_, err = health.Check(ctx, &healthpb.HealthCheckRequest{})
			wantCode(t, err, codes.Unauthenticated)
			watch, err := health.Watch(ctx, &healthpb.HealthCheckRequest{})
			wantCode(t, err, codes.OK)
			_, err = watch.Recv()
			wantCode(t, err, codes.Unauthenticated)
		})
	}
}

// A Watch never ends by itself; without a limit it would keep the process.
func TestShutdownOutlastsNoWatch(t *testing.T) {
	conn, ctx, ended := start(t)
	watch, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
	wantCode(t, err, codes.OK)
	_, err = watch.Recv()
	wantCode(t, err, codes.OK)
	_, err = pb.NewPluginServiceClient(conn).Shutdown(ctx, &pb.ShutdownRequest{GraceMs: 200})
	wantCode(t, err, codes.OK)
	<-ended
}

func TestTokenLine(t *testing.T) {
	token, err := readToken(bufio.NewReader(strings.NewReader("{\"token\": \"right\", \"more\": 1}\nrest")))
	if token != "right" || err != nil {
		t.Errorf("%q %v", token, err)
	}
	for _, line := range []string{"", "{\"token\": \"cut", "\n", "{}\n", "{\"token\": \"\"}\n", "{\"token\": 1}\n", "[]\n"} {
		if _, err := readToken(bufio.NewReader(strings.NewReader(line))); err == nil {
			t.Errorf("%q accepted", line)
		}
	}
}
