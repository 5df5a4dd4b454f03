import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.ConfigMapList;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.ListOptionsBuilder;
import io.fabric8.kubernetes.api.model.NamespaceBuilder;
import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.api.model.apiextensions.v1.CustomResourceDefinition;
import io.fabric8.kubernetes.client.Config;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.Watch;
import io.fabric8.kubernetes.client.Watcher;
import io.fabric8.kubernetes.client.WatcherException;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.dsl.base.PatchContext;
import io.fabric8.kubernetes.client.dsl.base.PatchType;
import io.fabric8.kubernetes.client.dsl.base.ResourceDefinitionContext;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderCallbacks;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElectionConfigBuilder;
import io.fabric8.kubernetes.client.extended.leaderelection.LeaderElector;
import io.fabric8.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/** The client of fabric8: {@code java Fabric8 KUBECONFIG NAMESPACE}. */
public final class Fabric8 {
  /** What the user of a robot states. */
  public static class RobotSpec {
    public String model;
    public Integer legs;
  }

  /** What its controller states. */
  public static class RobotStatus {
    public String phase;
    public Long observedGeneration;
  }

  /** A typed custom resource. */
  @Group("fabric8.example.com")
  @Version("v1")
  public static class Robot extends CustomResource<RobotSpec, RobotStatus> implements Namespaced {}

  private static final String DEFINITION =
      """
      apiVersion: apiextensions.k8s.io/v1
      kind: CustomResourceDefinition
      metadata: {name: robots.fabric8.example.com}
      spec:
        group: fabric8.example.com
        scope: Namespaced
        names: {kind: Robot, plural: robots, singular: robot}
        versions:
          - name: v1
            served: true
            storage: true
            subresources: {status: {}}
            schema:
              openAPIV3Schema:
                type: object
                properties:
                  spec:
                    type: object
                    required: [model]
                    properties:
                      model: {type: string}
                      legs: {type: integer, minimum: 2, default: 4}
                  status:
                    type: object
                    properties:
                      phase: {type: string, enum: [Idle, Walking]}
                      observedGeneration: {type: integer}
      """;

  private static final Steps steps = new Steps();

  public static void main(String[] arguments) {
    steps.end(Fabric8::run, arguments);
  }

  private static void run(String[] arguments) throws Exception {
    Config config = Config.fromKubeconfig(Files.readString(Path.of(arguments[0])));
    String namespace = arguments[1];
    try (KubernetesClient client = new KubernetesClientBuilder().withConfig(config).build()) {
      client.namespaces().resource(new NamespaceBuilder().withNewMetadata().withName(namespace).endMetadata().build()).create();
      informers(client, namespace);
      custom(client, namespace);
      applied(client, namespace);
      conflicts(client, namespace);
      pages(client, namespace);
      watched(client, namespace);
      elected(client, namespace);
    }
  }

  private static ConfigMap map(String name, String colour, String value) {
    return new ConfigMapBuilder()
        .withNewMetadata().withName(name).addToLabels("colour", colour).addToLabels("of", "informers").endMetadata()
        .addToData("n", value)
        .build();
  }

  private static void refused(String step, Runnable call) {
    try {
      call.run();
      steps.add(step, "ok");
    } catch (KubernetesClientException error) {
      steps.add(step, Arrays.asList(error.getCode(), error.getStatus().getReason(), error.getStatus().getMessage()));
    }
  }

  private static void informers(KubernetesClient client, String namespace) throws Exception {
    List<Object> seen = new CopyOnWriteArrayList<>();
    AtomicInteger resyncs = new AtomicInteger();
    client.configMaps().inNamespace(namespace).resource(map("before", "red", "0")).create();
    SharedIndexInformer<ConfigMap> informer =
        client.configMaps().inNamespace(namespace).withLabel("of", "informers").runnableInformer(500);
    informer.addIndexers(Map.of("colour", one -> List.of(one.getMetadata().getLabels().get("colour"))));
    informer.addEventHandlerWithResyncPeriod(
        new ResourceEventHandler<ConfigMap>() {
          @Override
          public void onAdd(ConfigMap one) {
            seen.add(Arrays.asList("add", one.getMetadata().getName(), one.getData()));
          }

          @Override
          public void onUpdate(ConfigMap old, ConfigMap now) {
            if (old.getMetadata().getResourceVersion().equals(now.getMetadata().getResourceVersion())) {
              resyncs.incrementAndGet();
            } else {
              seen.add(Arrays.asList("update", now.getMetadata().getName(), old.getData(), now.getData()));
            }
          }

          @Override
          public void onDelete(ConfigMap one, boolean unknown) {
            seen.add(Arrays.asList("delete", one.getMetadata().getName(), one.getData(), unknown));
          }
        },
        500);
    informer.start().toCompletableFuture().get();
    steps.add("synced", informer.hasSynced());
    steps.eventually("the first one", () -> seen.size() == 1);
    client.configMaps().inNamespace(namespace).resource(map("a", "red", "1")).create();
    steps.eventually("a is added", () -> seen.size() == 2);
    client.configMaps().inNamespace(namespace).resource(map("b", "blue", "1")).create();
    client.configMaps().inNamespace(namespace).withName("a").edit(
        one -> new ConfigMapBuilder(one).addToData("n", "2").build());
    steps.eventually("a is updated", () -> seen.size() == 4);
    steps.add("red", names(informer.getIndexer().byIndex("colour", "red")));
    client.configMaps().inNamespace(namespace).withName("a").edit(
        one -> new ConfigMapBuilder(one).editMetadata().removeFromLabels("of").endMetadata().build());
    steps.eventually("a does not match any more", () -> seen.size() == 5);
    client.configMaps().inNamespace(namespace).withName("b").delete();
    steps.eventually("b is deleted", () -> seen.size() == 6);
    steps.eventually("resyncs", () -> resyncs.get() >= 2);
    steps.add("seen", new ArrayList<>(seen));
    steps.add("cached", names(informer.getStore().list()));
    steps.add("watching", informer.isWatching());
    informer.stop();
  }

  private static List<String> names(List<ConfigMap> found) {
    return found.stream().map(one -> one.getMetadata().getName()).sorted().toList();
  }

  private static void custom(KubernetesClient client, String namespace) throws Exception {
    CustomResourceDefinition definition = client.getKubernetesSerialization().unmarshal(DEFINITION, CustomResourceDefinition.class);
    client.apiextensions().v1().customResourceDefinitions().resource(definition).create();
    client.apiextensions().v1().customResourceDefinitions().withName("robots.fabric8.example.com").waitUntilCondition(
        one -> one != null && one.getStatus() != null && one.getStatus().getConditions().stream()
            .anyMatch(condition -> condition.getType().equals("Established") && condition.getStatus().equals("True")),
        20, java.util.concurrent.TimeUnit.SECONDS);
    var robots = client.resources(Robot.class).inNamespace(namespace);
    steps.eventually("robots are served", () -> {
      try {
        robots.list();
        return true;
      } catch (KubernetesClientException error) {
        return false;
      }
    });
    List<Object> seen = new CopyOnWriteArrayList<>();
    SharedIndexInformer<Robot> informer = robots.inform(new ResourceEventHandler<Robot>() {
      @Override
      public void onAdd(Robot one) {
        seen.add(Arrays.asList("add", one.getMetadata().getName(), one.getSpec().legs));
      }

      @Override
      public void onUpdate(Robot old, Robot now) {
        seen.add(Arrays.asList("update", now.getMetadata().getGeneration(), now.getStatus() == null ? null : now.getStatus().phase));
      }

      @Override
      public void onDelete(Robot one, boolean unknown) {
        seen.add(Arrays.asList("delete", one.getMetadata().getName()));
      }
    });
    Robot robot = new Robot();
    robot.getMetadata().setName("r2");
    robot.setSpec(new RobotSpec());
    robot.getSpec().model = "walker";
    Robot made = robots.resource(robot).create();
    steps.add("defaulted", made.getSpec().legs);
    made.getSpec().legs = 1;
    refused("too few legs", () -> robots.resource(made).update());
    robots.withName("r2").edit(one -> {
      one.getSpec().legs = 6;
      return one;
    });
    robots.withName("r2").editStatus(one -> {
      one.setStatus(new RobotStatus());
      one.getStatus().phase = "Walking";
      one.getStatus().observedGeneration = one.getMetadata().getGeneration();
      return one;
    });
    refused("no such phase", () -> robots.withName("r2").editStatus(one -> {
      one.getStatus().phase = "Flying";
      return one;
    }));
    ResourceDefinitionContext context = new ResourceDefinitionContext.Builder()
        .withGroup("fabric8.example.com").withVersion("v1").withKind("Robot").withPlural("robots").withNamespaced(true).build();
    Resource<GenericKubernetesResource> generic = client.genericKubernetesResources(context).inNamespace(namespace).withName("r2");
    steps.add("generic", Arrays.asList(generic.get().getAdditionalProperties().get("spec"), generic.get().getAdditionalProperties().get("status")));
    generic.patch(PatchContext.of(PatchType.JSON), "[{\"op\": \"replace\", \"path\": \"/spec/legs\", \"value\": 8}]");
    steps.add("patched", robots.withName("r2").get().getSpec().legs);
    robots.withName("r2").delete();
    steps.eventually("it is deleted", () -> seen.stream().anyMatch(one -> one.toString().contains("delete")));
    steps.add("seen robots", new ArrayList<>(seen));
    informer.stop();
  }

  private static void applied(KubernetesClient client, String namespace) {
    var maps = client.configMaps().inNamespace(namespace);
    ConfigMap mine = new ConfigMapBuilder().withNewMetadata().withName("applied").endMetadata().addToData("a", "1").addToData("b", "1").build();
    maps.resource(mine).fieldManager("one").serverSideApply();
    ConfigMap other = new ConfigMapBuilder().withNewMetadata().withName("applied").endMetadata().addToData("a", "2").build();
    refused("conflict", () -> maps.resource(other).fieldManager("two").serverSideApply());
    steps.add("forced", maps.resource(other).fieldManager("two").forceConflicts().serverSideApply().getData());
    ConfigMap less = new ConfigMapBuilder().withNewMetadata().withName("applied").endMetadata().addToData("c", "3").build();
    ConfigMap found = maps.resource(less).fieldManager("one").serverSideApply();
    steps.add("owned", new TreeMap<>(found.getData()));
    steps.add("managers", found.getMetadata().getManagedFields().stream().map(one -> one.getManager() + " " + one.getOperation()).sorted().toList());
  }

  private static void conflicts(KubernetesClient client, String namespace) throws Exception {
    var maps = client.configMaps().inNamespace(namespace);
    ConfigMap old = maps.resource(new ConfigMapBuilder().withNewMetadata().withName("locked").endMetadata().build()).create();
    maps.withName("locked").edit(one -> new ConfigMapBuilder(one).addToData("x", "1").build());
    ConfigMap stale = new ConfigMapBuilder(old).addToData("x", "2").build();
    refused("stale", () -> maps.resource(stale).lockResourceVersion(old.getMetadata().getResourceVersion()).update());
    refused("again", () -> maps.resource(new ConfigMapBuilder().withNewMetadata().withName("locked").endMetadata().build()).create());
    refused("no name", () -> maps.resource(new ConfigMapBuilder().withNewMetadata().withName("No_").endMetadata().build()).create());
    steps.add("missing", maps.withName("nosuch").get() == null);
    steps.add("finalizers", maps.withName("locked").edit(one -> new ConfigMapBuilder(one).editMetadata().addToFinalizers("example.com/x").endMetadata().build()).getMetadata().getFinalizers());
    maps.withName("locked").delete();
    steps.add("terminating", maps.withName("locked").get().getMetadata().getDeletionTimestamp() != null);
    maps.withName("locked").edit(one -> new ConfigMapBuilder(one).editMetadata().withFinalizers().endMetadata().build());
    steps.eventually("it is gone", () -> maps.withName("locked").get() == null);
  }

  private static void pages(KubernetesClient client, String namespace) {
    for (int number = 0; number < 5; number++) {
      client.secrets().inNamespace(namespace).resource(
          new io.fabric8.kubernetes.api.model.SecretBuilder().withNewMetadata().withName("s-" + number).addToLabels("of", "pages").endMetadata().build()).create();
    }
    List<Object> sizes = new ArrayList<>();
    String next = null;
    do {
      var page = client.secrets().inNamespace(namespace).withLabel("of", "pages").list(
          new ListOptionsBuilder().withLimit(2L).withContinue(next).build());
      sizes.add(Arrays.asList(page.getItems().size(), page.getMetadata().getRemainingItemCount()));
      next = page.getMetadata().getContinue();
    } while (next != null && !next.isEmpty());
    steps.add("pages", sizes);
  }

  private static void watched(KubernetesClient client, String namespace) throws Exception {
    List<Object> seen = new CopyOnWriteArrayList<>();
    AtomicInteger reconnects = new AtomicInteger();
    CompletableFuture<Boolean> closed = new CompletableFuture<>();
    var maps = client.configMaps().inNamespace(namespace);
    String revision = maps.list().getMetadata().getResourceVersion();
    Watch watch = maps.watch(
        new ListOptionsBuilder().withResourceVersion(revision).withTimeoutSeconds(1L).withAllowWatchBookmarks(true).build(),
        new Watcher<ConfigMap>() {
          @Override
          public boolean reconnecting() {
            reconnects.incrementAndGet();
            return true;
          }

          @Override
          public void eventReceived(Action action, ConfigMap one) {
            if (action != Action.BOOKMARK) {
              seen.add(Arrays.asList(action.name(), one.getMetadata().getName(), one.getData()));
            }
          }

          @Override
          public void onClose(WatcherException cause) {
            closed.complete(false);
          }

          @Override
          public void onClose() {
            closed.complete(true);
          }
        });
    for (int round = 0; round < 3; round++) {
      maps.resource(new ConfigMapBuilder().withNewMetadata().withName("w-" + round).endMetadata().build()).create();
      maps.withName("w-" + round).edit(one -> new ConfigMapBuilder(one).addToData("x", "1").build());
      maps.withName("w-" + round).delete();
      Thread.sleep(900); // the server ends the watch in between
    }
    steps.eventually("nine events", () -> seen.size() >= 9);
    watch.close();
    steps.add("watched", new ArrayList<>(seen));
    steps.add("reconnects", reconnects.get() >= 1);
    steps.add("closed", closed.get());
  }

  private static void elected(KubernetesClient client, String namespace) throws Exception {
    List<String> told = new CopyOnWriteArrayList<>();
    List<CompletableFuture<?>> terms = new ArrayList<>();
    for (String me : List.of("one", "two")) {
      LeaderElector elector = client.leaderElector().withConfig(new LeaderElectionConfigBuilder()
          .withName("robots")
          .withLeaseDuration(Duration.ofSeconds(3))
          .withRenewDeadline(Duration.ofSeconds(2))
          .withRetryPeriod(Duration.ofMillis(300))
          .withReleaseOnCancel(true)
          .withLock(new LeaseLock(namespace, "leader", me))
          .withLeaderCallbacks(new LeaderCallbacks(() -> told.add(me + " leads"), () -> told.add(me + " stops"), who -> told.add(me + " sees " + who)))
          .build()).build();
      terms.add(elector.start());
      if (me.equals("one")) {
        steps.eventually("one leads", () -> told.contains("one leads"));
      }
    }
    steps.eventually("two sees it", () -> told.contains("two sees one"));
    terms.get(0).cancel(true);
    steps.eventually("two leads", () -> told.contains("two leads"));
    steps.add("elected", Arrays.asList(told.contains("one stops"), told.indexOf("one stops") < told.indexOf("two leads")));
    steps.add("holder", client.leases().inNamespace(namespace).withName("leader").get().getSpec().getHolderIdentity());
    steps.add("transitions", client.leases().inNamespace(namespace).withName("leader").get().getSpec().getLeaseTransitions());
    terms.get(1).cancel(true);
  }
}
