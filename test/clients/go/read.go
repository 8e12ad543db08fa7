// Reads every resource with the client of oapi-codegen.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strings"

	"example.com/reader/api"
)

// walk follows the cursor to the end of a list.
func walk[Item any](read func(after *string, limit *int) (items []Item, more bool, cursor string), use func(Item)) {
	limit := 2
	var after *string
	for {
		items, more, cursor := read(after, &limit)
		for _, item := range items {
			use(item)
		}
		if !more {
			return
		}
		after = &cursor
	}
}

func main() {
	ctx := context.Background()
	withKey := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("API_KEY"))
		return nil
	}
	client, err := api.NewClientWithResponses(os.Getenv("API_URL"), api.WithRequestEditorFn(withKey))
	must(err)

	walk(func(after *string, limit *int) ([]api.Rep, bool, string) {
		answer, err := client.ListRepsWithResponse(ctx, &api.ListRepsParams{StartingAfter: after, Limit: limit})
		must(err)
		return answer.JSON200.Data, answer.JSON200.HasMore, answer.JSON200.NextCursor
	}, func(rep api.Rep) { fmt.Println("reps", rep.Id, text(rep.StartedOn)) })

	walk(func(after *string, limit *int) ([]api.Period, bool, string) {
		answer, err := client.ListPeriodsWithResponse(ctx, &api.ListPeriodsParams{StartingAfter: after, Limit: limit})
		must(err)
		return answer.JSON200.Data, answer.JSON200.HasMore, answer.JSON200.NextCursor
	}, func(period api.Period) { fmt.Println("periods", period.Id, period.StartsAt) })

	walk(func(after *string, limit *int) ([]api.Payout, bool, string) {
		answer, err := client.ListPayoutsWithResponse(ctx, &api.ListPayoutsParams{StartingAfter: after, Limit: limit})
		must(err)
		return answer.JSON200.Data, answer.JSON200.HasMore, answer.JSON200.NextCursor
	}, func(payout api.Payout) {
		fmt.Print("payouts ", payout.Id, " ", payout.NetAmount, " ", text(payout.CalculatedAt))
		for _, line := range payout.LineItems {
			fmt.Print(" ", line.Amount)
		}
		fmt.Println()
		statement, err := client.GetStatementWithResponse(ctx, payout.Id, &api.GetStatementParams{})
		must(err)
		fmt.Println("statements", statement.JSON200.Data.Id, len(statement.JSON200.Data.CalculationTrace))
		walk(func(after *string, limit *int) ([]api.PayoutStep, bool, string) {
			parameters := &api.ListPayoutHistoryParams{StartingAfter: after, Limit: limit}
			answer, err := client.ListPayoutHistoryWithResponse(ctx, payout.Id, parameters)
			must(err)
			return answer.JSON200.Data, answer.JSON200.HasMore, answer.JSON200.NextCursor
		}, func(step api.PayoutStep) {
			if step.Difference == nil {
				fmt.Println("history", step.Id, "none")
			} else {
				fmt.Println("history", step.Id, text(step.Difference.NetAmount))
			}
		})
	})

	walk(func(after *string, limit *int) ([]api.PayrollRecord, bool, string) {
		parameters := &api.ListPayrollRecordsParams{StartingAfter: after, Limit: limit}
		answer, err := client.ListPayrollRecordsWithResponse(ctx, parameters)
		must(err)
		return answer.JSON200.Data, answer.JSON200.HasMore, answer.JSON200.NextCursor
	}, func(record api.PayrollRecord) {
		fmt.Println("payroll_files", record.Id, record.Amount, record.Destination.Type)
	})

	walk(func(after *string, limit *int) ([]api.Change, bool, string) {
		answer, err := client.ListChangesWithResponse(ctx, &api.ListChangesParams{StartingAfter: after, Limit: limit})
		must(err)
		return answer.JSON200.Data, answer.JSON200.HasMore, answer.JSON200.NextCursor
	}, func(change api.Change) {
		value, err := change.ValueByDiscriminator()
		must(err)
		switch of := value.(type) {
		case api.RepChange:
			fmt.Println("changes", of.Id, of.Kind, of.PublishedAt, of.Record.Id, "")
		case api.PeriodChange:
			fmt.Println("changes", of.Id, of.Kind, of.PublishedAt, of.Record.Id, "")
		case api.PayoutChange:
			fmt.Println("changes", of.Id, of.Kind, of.PublishedAt, of.Record.Id, of.Record.NetAmount)
		case api.PayrollChange:
			fmt.Println("changes", of.Id, of.Kind, of.PublishedAt, of.Record.Id, of.Record.Amount)
		}
	})

	totals, err := client.GetTotalsWithResponse(ctx, &api.GetTotalsParams{})
	must(err)
	for _, total := range totals.JSON200.Data.Totals {
		fmt.Println("totals", total.PeriodId, total.OwedAmount, total.PaidCount)
	}
	checkpoint, err := client.GetCheckpointWithResponse(ctx, &api.GetCheckpointParams{})
	must(err)
	lines := strings.Split(checkpoint.JSON200.Data.Note, "\n")
	fmt.Println("checkpoint", lines[3], lines[5])
}

func text(value *string) string {
	if value == nil {
		return "null"
	}
	return *value
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
