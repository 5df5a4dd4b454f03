import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.dsl.ExecWatch;
import java.io.ByteArrayOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;

/** Sessions with a running container, by fabric8's client: {@code java Containers KUBECONFIG NAMESPACE POD}. */
public final class Containers {
  private static final Steps steps = new Steps();

  public static void main(String[] arguments) {
    steps.end(Containers::run, arguments);
  }

  private static void run(String[] arguments) throws Exception {
    Config config = Config.fromKubeconfig(Files.readString(Path.of(arguments[0])));
    try (KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build()) {
      var pod = client.pods().inNamespace(arguments[1]).withName(arguments[2]);
      pod.waitUntilReady(20, TimeUnit.SECONDS);
      ByteArrayOutputStream out = new ByteArrayOutputStream();
      ByteArrayOutputStream err = new ByteArrayOutputStream();
      ExecWatch failing = pod.writingOutput(out).writingError(err).exec("sh", "-c", "echo out; echo err >&2; exit 3");
      steps.add("exec", Arrays.asList(failing.exitCode().get(10, TimeUnit.SECONDS), out.toString(), err.toString()));
      steps.add("log", pod.getLog());
    }
  }
}
