package example;

import java.util.List;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.*;
import org.openapitools.client.model.*;

/** Reads every resource with the client of openapi-generator. */
public class Read {
  interface ReadPage<P> {
    P read(String after) throws ApiException;
  }

  interface Use<I> {
    void use(I item) throws ApiException;
  }

  record Page<I>(List<I> data, boolean hasMore, String nextCursor) {}

  /** Follows the cursor to the end of a list. */
  static <I> void walk(ReadPage<Page<I>> read, Use<I> use) throws ApiException {
    for (String after = null; ; ) {
      Page<I> page = read.read(after);
      for (I item : page.data()) use.use(item);
      if (!page.hasMore()) return;
      after = page.nextCursor();
    }
  }

  static void print(Object... fields) {
    StringBuilder line = new StringBuilder();
    for (Object field : fields) line.append(line.isEmpty() ? "" : " ").append(field);
    System.out.println(line);
  }

  public static void main(String[] args) throws ApiException {
    ApiClient client = new ApiClient();
    client.updateBaseUri(System.getenv("API_URL"));
    client.setRequestInterceptor(
        request -> request.header("Authorization", "Bearer " + System.getenv("API_KEY")));
    PayoutsApi payouts = new PayoutsApi(client);

    walk(
        after -> {
          RepList page = new RepsApi(client).listReps(after, 2, null, null, null);
          return new Page<>(page.getData(), page.getHasMore(), page.getNextCursor());
        },
        rep -> print("reps", rep.getId(), rep.getStartedOn()));
    walk(
        after -> {
          PeriodList page = new PeriodsApi(client).listPeriods(after, 2, null, null, null);
          return new Page<>(page.getData(), page.getHasMore(), page.getNextCursor());
        },
        period -> print("periods", period.getId(), period.getStartsAt()));
    walk(
        after -> {
          PayoutList page = payouts.listPayouts(after, 2, null, null, null, null, null, null);
          return new Page<>(page.getData(), page.getHasMore(), page.getNextCursor());
        },
        payout -> {
          StringBuilder amounts = new StringBuilder();
          for (LineItem line : payout.getLineItems()) amounts.append(" ").append(line.getAmount());
          print("payouts", payout.getId(), payout.getNetAmount(), payout.getCalculatedAt() + amounts);
          Statement statement = new StatementsApi(client).getStatement(payout.getId(), null, null).getData();
          print("statements", statement.getId(), statement.getCalculationTrace().size());
          walk(
              after -> {
                PayoutStepList page = payouts.listPayoutHistory(payout.getId(), after, 2, null, null);
                return new Page<>(page.getData(), page.getHasMore(), page.getNextCursor());
              },
              step -> {
                Difference difference = step.getDifference();
                print("history", step.getId(), difference == null ? "none" : difference.getNetAmount());
              });
        });
    walk(
        after -> {
          PayrollRecordList page = new PayrollFilesApi(client).listPayrollRecords(after, 2, null, null, null, null, null);
          return new Page<>(page.getData(), page.getHasMore(), page.getNextCursor());
        },
        record -> print("payroll_files", record.getId(), record.getAmount(), record.getDestination().getType()));
    walk(
        after -> {
          ChangeList page = new ChangesApi(client).listChanges(after, 2, null, null, null, null, null, null, null);
          return new Page<>(page.getData(), page.getHasMore(), page.getNextCursor());
        },
        change -> {
          Object of = change.getActualInstance();
          if (of instanceof RepChange c) {
            print("changes", c.getId(), c.getKind(), c.getPublishedAt(), c.getRecord().getId(), "");
          } else if (of instanceof PeriodChange c) {
            print("changes", c.getId(), c.getKind(), c.getPublishedAt(), c.getRecord().getId(), "");
          } else if (of instanceof PayoutChange c) {
            PayoutChange p = c;
            print("changes", p.getId(), p.getKind(), p.getPublishedAt(), p.getRecord().getId(), p.getRecord().getNetAmount());
          } else if (of instanceof PayrollChange c) {
            print("changes", c.getId(), c.getKind(), c.getPublishedAt(), c.getRecord().getId(), c.getRecord().getAmount());
          }
        });
    for (Total total : new TotalsApi(client).getTotals(null, null, null, null, null).getData().getTotals()) {
      print("totals", total.getPeriodId(), total.getOwedAmount(), total.getPaidCount());
    }
    String[] lines = new CheckpointApi(client).getCheckpoint(null).getData().getNote().split("\n");
    print("checkpoint", lines[3], lines[5]);
  }
}
