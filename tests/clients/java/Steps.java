import com.fasterxml.jackson.databind.ObjectMapper;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.function.BooleanSupplier;

/** A record of what was done and what came of it. */
final class Steps {
  private static final long WAIT_MS = 20_000;
  private static final ObjectMapper JSON = new ObjectMapper();
  private final List<Object> done = new ArrayList<>();

  synchronized void add(String step, Object result) {
    done.add(Arrays.asList(step, result));
  }

  void eventually(String what, BooleanSupplier holds) throws InterruptedException {
    long deadline = System.currentTimeMillis() + WAIT_MS;
    while (!holds.getAsBoolean()) {
      if (System.currentTimeMillis() > deadline) {
        throw new IllegalStateException("not within 20 s: " + what + "; so far: " + done);
      }
      Thread.sleep(20);
    }
  }

  /** What a program does with its arguments. */
  interface Program {
    void run(String[] arguments) throws Exception;
  }

  /** Runs a program, prints the record, and ends the process, whatever threads of clients still run. */
  void end(Program program, String[] arguments) {
    try {
      program.run(arguments);
      System.out.println(JSON.writeValueAsString(java.util.Map.of("steps", done)));
      System.exit(0);
    } catch (Throwable error) {
      error.printStackTrace();
      System.exit(1);
    }
  }

  /** Calls something again where it may meet a conflict. */
  static <T> T retried(Callable<T> call) throws Exception {
    for (int attempt = 0; ; attempt++) {
      try {
        return call.call();
      } catch (io.fabric8.kubernetes.client.KubernetesClientException error) {
        if (error.getCode() != 409 || attempt > 5) {
          throw error;
        }
      }
    }
  }
}
