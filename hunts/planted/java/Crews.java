import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.ConfigBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.dsl.MixedOperation;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.dsl.base.ResourceDefinitionContext;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * A small controller with planted bugs, with the client of fabric8: it writes a roster for each Crew, and says so in an
 * annotation. {@code java Crews KUBECONFIG BUG} plants one mistake that real operators have made; with {@code CAREFUL=1} in
 * the environment it has none.
 *
 * <ul>
 *   <li>resigned: when an update meets a conflict, it is logged, and not tried again
 * </ul>
 */
public final class Crews {
  private static final ResourceDefinitionContext KIND =
      new ResourceDefinitionContext.Builder()
          .withGroup("planted.example.com").withVersion("v1").withKind("Crew").withPlural("crews").withNamespaced(true)
          .build();
  private static final String READY = "ready";

  private final KubernetesClient client;
  private final String bug;
  private final BlockingQueue<String> wanted = new LinkedBlockingQueue<>();

  private Crews(KubernetesClient client, String bug) {
    this.client = client;
    this.bug = bug;
  }

  public static void main(String[] arguments) throws Exception {
    String bug = "1".equals(System.getenv("CAREFUL")) ? "" : arguments[1];
    Config config =
        new ConfigBuilder(Config.fromKubeconfig(Files.readString(Path.of(arguments[0])))).withRequestRetryBackoffLimit(0).build();
    new Crews(new KubernetesClientBuilder().withConfig(config).build(), bug).run();
  }

  private MixedOperation<GenericKubernetesResource, ?, Resource<GenericKubernetesResource>> crews() {
    return client.genericKubernetesResources(KIND);
  }

  private void run() throws Exception {
    crews().inNamespace("default").inform(
        new ResourceEventHandler<GenericKubernetesResource>() {
          @Override
          public void onAdd(GenericKubernetesResource crew) {
            wanted.add(crew.getMetadata().getName());
          }

          @Override
          public void onUpdate(GenericKubernetesResource before, GenericKubernetesResource crew) {
            wanted.add(crew.getMetadata().getName());
          }

          @Override
          public void onDelete(GenericKubernetesResource crew, boolean isUnknown) {}
        });
    while (true) {
      String name = wanted.take();
      try {
        reconcile(name);
      } catch (KubernetesClientException error) {
        System.out.println(name + ": " + error.getMessage());
        if (!(bug.equals("resigned") && error.getCode() == 409)) {
          wanted.add(name);
        }
      }
    }
  }

  private void reconcile(String name) {
    Resource<GenericKubernetesResource> place = crews().inNamespace("default").withName(name);
    GenericKubernetesResource crew = place.get();
    if (crew == null) {
      return;
    }
    Resource<ConfigMap> roster = client.configMaps().inNamespace("default").withName(name + "-roster");
    if (roster.get() == null) {
      client.configMaps().inNamespace("default").resource(roster(crew)).create();
    }
    Map<String, String> annotations = crew.getMetadata().getAnnotations();
    if (!"yes".equals(annotations.get(READY))) {
      annotations.put(READY, "yes");
      crews().inNamespace("default").resource(crew).update(); // only if it is the version that was read
    }
  }

  private static ConfigMap roster(GenericKubernetesResource crew) {
    return new ConfigMapBuilder()
        .withNewMetadata()
        .withName(crew.getMetadata().getName() + "-roster")
        .addNewOwnerReference()
        .withApiVersion(crew.getApiVersion()).withKind(crew.getKind())
        .withName(crew.getMetadata().getName()).withUid(crew.getMetadata().getUid())
        .withController(true)
        .endOwnerReference()
        .endMetadata()
        .addToData("captain", "nobody")
        .build();
  }
}
