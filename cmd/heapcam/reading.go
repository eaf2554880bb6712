package main

import "github.com/spf13/cobra"

func newPullCmd() *cobra.Command      { return &cobra.Command{Use: "pull"} }
func newReportCmd() *cobra.Command    { return &cobra.Command{Use: "report"} }
func newHistogramCmd() *cobra.Command { return &cobra.Command{Use: "histogram"} }
func newVerifyCmd() *cobra.Command    { return &cobra.Command{Use: "verify"} }
func newDumpCmd() *cobra.Command      { return &cobra.Command{Use: "dump"} }
