// How to log in, where one has to: a file of settings that the environment names, as Kafka's clients have them.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func loggingIn() []kgo.Opt {
	content, err := os.ReadFile(os.Getenv("OTTLA_CLIENT_CONFIG"))
	if err != nil {
		return nil
	}
	said := map[string]string{}
	for _, line := range strings.Split(string(content), "\n") {
		name, value, _ := strings.Cut(line, "=")
		said[name] = value
	}
	authority, err := os.ReadFile(said["ssl.truststore.location"])
	if err != nil {
		panic(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	return []kgo.Opt{kgo.DialTLSConfig(&tls.Config{RootCAs: trusted}), kgo.SASL(mechanism(said))}
}

func mechanism(said map[string]string) sasl.Mechanism {
	user, password := said["sasl.username"], said["sasl.password"]
	switch said["sasl.mechanism"] {
	case "SCRAM-SHA-256":
		return scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return scram.Auth{User: user, Pass: password}.AsSha512Mechanism()
	}
	return plain.Auth{User: user, Pass: password}.AsMechanism()
}
