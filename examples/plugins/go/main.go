// Egress is an interceptor plugin: before each tool call it looks for URLs in
// the arguments and denies the call when one leads to a host that the operator
// did not allow. This file is the plugin as a process: launch, token, lifeline.
package main

import (
	"bufio"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	pb "agent-hooks-example-egress/gen/agent_hooks/v1"
)

// A context may have 5 MiB, and both sides agreed on 16. gRPC's default of
// 4 MiB would answer the large ones with RESOURCE_EXHAUSTED, hence a deny.
const maxMessage = 16 << 20

// A soft limit makes the collector work harder rather than let 64 contexts of
// 5 MiB at once run into plugin.toml's address_space_mb, which would end the
// process, or hang it.
const maxMemory = 1 << 30

func main() {
	debug.SetMemoryLimit(maxMemory)
	log.SetFlags(0)
	log.SetPrefix("egress: ") // To stderr, which is only a log, as stdout is.

	path, ok := strings.CutPrefix(os.Getenv("AGENT_HOOKS_PLUGIN_ADDRESS"), "unix://")
	if !ok {
		log.Fatal("AGENT_HOOKS_PLUGIN_ADDRESS is not a unix:// address; a host starts this program")
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		log.Fatal(err)
	}
	stdin := bufio.NewReader(os.Stdin)
	token, err := readToken(stdin)
	if err != nil {
		log.Fatal(err)
	}
	server, stop := newServer(token)

	go func() { // The lifeline: end of file means that the host is gone.
		_, _ = io.Copy(io.Discard, stdin)
		_ = os.Remove(path)
		os.Exit(0)
	}()
	go func() {
		terminated := make(chan os.Signal, 1)
		signal.Notify(terminated, syscall.SIGTERM)
		<-terminated
		stop(time.Second) // The host kills after two.
	}()
	if err := server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		log.Fatal(err)
	}
}

// readToken reads the first line of standard input.
func readToken(stdin *bufio.Reader) (string, error) {
	line, err := stdin.ReadBytes('\n')
	if err != nil {
		return "", errors.New("standard input ended before its first line")
	}
	var hello struct {
		Token string `json:"token"`
	}
	// An empty token would let in every caller that sends none.
	if err := json.Unmarshal(line, &hello); err != nil || hello.Token == "" {
		return "", errors.New("the first line of standard input is no JSON object with a token")
	}
	return hello.Token, nil
}

// newServer returns the server and what stops it: calls in flight get the
// grace to end, and a stream without end, such as a health Watch, no more.
func newServer(token string) (*grpc.Server, func(grace time.Duration)) {
	check := func(ctx context.Context) error {
		sent := metadata.ValueFromIncomingContext(ctx, "agent-hooks-token")
		if len(sent) != 1 || subtle.ConstantTimeCompare([]byte(sent[0]), []byte(token)) != 1 {
			return status.Error(codes.Unauthenticated, "agent-hooks-token is missing or wrong")
		}
		return nil
	}
	server := grpc.NewServer(
		grpc.MaxRecvMsgSize(maxMessage),
		grpc.UnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			if err := check(ctx); err != nil {
				return nil, err
			}
			return next(ctx, req)
		}),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
			if err := check(stream.Context()); err != nil {
				return err
			}
			return next(srv, stream)
		}),
	)
	alive := health.NewServer() // SERVING from the start.
	stop := func(grace time.Duration) {
		alive.Shutdown()
		hard := time.AfterFunc(grace, server.Stop)
		defer hard.Stop()
		server.GracefulStop()
	}
	egress := &plugin{stop: stop}
	pb.RegisterPluginServiceServer(server, egress)
	pb.RegisterInterceptorServiceServer(server, egress)
	healthpb.RegisterHealthServer(server, alive)
	return server, stop
}
