import io.kubernetes.client.Discovery;
import io.kubernetes.client.custom.V1Patch;
import io.kubernetes.client.extended.controller.Controller;
import io.kubernetes.client.extended.controller.builder.ControllerBuilder;
import io.kubernetes.client.extended.controller.reconciler.Request;
import io.kubernetes.client.extended.controller.reconciler.Result;
import io.kubernetes.client.extended.leaderelection.LeaderElectionConfig;
import io.kubernetes.client.extended.leaderelection.LeaderElector;
import io.kubernetes.client.extended.leaderelection.resourcelock.LeaseLock;
import io.kubernetes.client.informer.ResourceEventHandler;
import io.kubernetes.client.informer.SharedIndexInformer;
import io.kubernetes.client.informer.SharedInformerFactory;
import io.kubernetes.client.informer.cache.Lister;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.ApiException;
import io.kubernetes.client.openapi.apis.CoordinationV1Api;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1ConfigMapList;
import io.kubernetes.client.openapi.models.V1Namespace;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.util.ClientBuilder;
import io.kubernetes.client.util.KubeConfig;
import io.kubernetes.client.util.generic.GenericKubernetesApi;
import io.kubernetes.client.util.generic.dynamic.DynamicKubernetesApi;
import io.kubernetes.client.util.generic.dynamic.DynamicKubernetesObject;
import java.io.FileReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/** The official client of Java: {@code java Official KUBECONFIG NAMESPACE}. */
public final class Official {
  private static final Steps steps = new Steps();

  public static void main(String[] arguments) {
    steps.end(Official::run, arguments);
  }

  private static void run(String[] arguments) throws Exception {
    ApiClient client = ClientBuilder.kubeconfig(KubeConfig.loadKubeConfig(new FileReader(arguments[0]))).build();
    client.setReadTimeout(0);
    String namespace = arguments[1];
    CoreV1Api core = new CoreV1Api(client);
    core.createNamespace(new V1Namespace().metadata(new V1ObjectMeta().name(namespace))).execute();
    informer(client, core, namespace);
    generic(client, namespace);
    elected(client, namespace);
  }

  private static V1ConfigMap map(String name, Map<String, String> data) {
    return new V1ConfigMap().metadata(new V1ObjectMeta().name(name).putLabelsItem("of", "informer")).data(data);
  }

  private static void informer(ApiClient client, CoreV1Api core, String namespace) throws Exception {
    SharedInformerFactory factory = new SharedInformerFactory(client);
    GenericKubernetesApi<V1ConfigMap, V1ConfigMapList> api =
        new GenericKubernetesApi<>(V1ConfigMap.class, V1ConfigMapList.class, "", "v1", "configmaps", client);
    SharedIndexInformer<V1ConfigMap> informer =
        factory.sharedIndexInformerFor(api, V1ConfigMap.class, 1000, namespace);
    List<Object> seen = new CopyOnWriteArrayList<>();
    AtomicInteger resyncs = new AtomicInteger();
    informer.addEventHandlerWithResyncPeriod(
        new ResourceEventHandler<V1ConfigMap>() {
          private boolean isOurs(V1ConfigMap one) {
            return !one.getMetadata().getName().equals("kube-root-ca.crt");
          }

          @Override
          public void onAdd(V1ConfigMap one) {
            if (isOurs(one)) {
              seen.add(Arrays.asList("add", one.getMetadata().getName(), one.getData()));
            }
          }

          @Override
          public void onUpdate(V1ConfigMap old, V1ConfigMap now) {
            if (old.getMetadata().getResourceVersion().equals(now.getMetadata().getResourceVersion())) {
              resyncs.incrementAndGet();
            } else if (isOurs(now)) {
              seen.add(Arrays.asList("update", now.getMetadata().getName(), old.getData(), now.getData()));
            }
          }

          @Override
          public void onDelete(V1ConfigMap one, boolean unknown) {
            seen.add(Arrays.asList("delete", one.getMetadata().getName(), unknown));
          }
        },
        1000);
    List<String> reconciled = new CopyOnWriteArrayList<>();
    Lister<V1ConfigMap> lister = new Lister<>(informer.getIndexer(), namespace);
    Controller controller = ControllerBuilder.defaultBuilder(factory)
        .watch(queue -> ControllerBuilder.controllerWatchBuilder(V1ConfigMap.class, queue)
            .withWorkQueueKeyFunc(one -> new Request(one.getMetadata().getNamespace(), one.getMetadata().getName()))
            .build())
        .withReconciler(request -> {
          V1ConfigMap found = lister.get(request.getName());
          String data = found == null ? "gone" : String.valueOf(found.getData());
          if (!reconciled.contains(request.getName() + " " + data)) {
            reconciled.add(request.getName() + " " + data);
          }
          return new Result(false);
        })
        .withReadyFunc(informer::hasSynced)
        .withName("maps")
        .withWorkerCount(1)
        .build();
    core.createNamespacedConfigMap(namespace, map("before", Map.of("n", "0"))).execute();
    factory.startAllRegisteredInformers();
    Thread running = new Thread(controller);
    running.start();
    steps.eventually("synced", informer::hasSynced);
    steps.eventually("before is added", () -> seen.size() == 1);
    core.createNamespacedConfigMap(namespace, map("a", Map.of("n", "1"))).execute();
    steps.eventually("a is added", () -> seen.size() == 2);
    steps.eventually("a is reconciled", () -> reconciled.contains("a {n=1}"));
    V1ConfigMap found = core.readNamespacedConfigMap("a", namespace).execute();
    core.replaceNamespacedConfigMap("a", namespace, found.data(Map.of("n", "2"))).execute();
    steps.eventually("a is updated", () -> seen.size() == 3);
    steps.eventually("a is reconciled again", () -> reconciled.contains("a {n=2}"));
    refused("stale", () -> core.replaceNamespacedConfigMap("a", namespace, found.data(Map.of("n", "3"))).execute());
    core.deleteNamespacedConfigMap("a", namespace).execute();
    steps.eventually("a is deleted", () -> seen.size() == 4);
    steps.eventually("a is gone", () -> reconciled.contains("a gone"));
    steps.eventually("resyncs", () -> resyncs.get() >= 2);
    steps.add("seen", new ArrayList<>(seen));
    steps.add("reconciled", reconciled.stream().filter(one -> !one.startsWith("kube-root-ca")).sorted().toList());
    controller.shutdown();
    factory.stopAllRegisteredInformers();
  }

  /** A call that may be refused. */
  private interface Call {
    void run() throws ApiException;
  }

  private static void refused(String step, Call call) throws Exception {
    try {
      call.run();
      steps.add(step, "ok");
    } catch (ApiException error) {
      var status = new com.fasterxml.jackson.databind.ObjectMapper().readTree(error.getResponseBody());
      steps.add(step, Arrays.asList(error.getCode(), status.get("reason").asText(), status.get("message").asText()));
    }
  }

  private static void generic(ApiClient client, String namespace) throws Exception {
    DynamicKubernetesApi maps = new DynamicKubernetesApi("", "v1", "configmaps", client);
    DynamicKubernetesObject one = new DynamicKubernetesObject();
    one.setApiVersion("v1");
    one.setKind("ConfigMap");
    one.setMetadata(new V1ObjectMeta().name("dynamic").namespace(namespace));
    steps.add("created", maps.create(one).isSuccess());
    var again = maps.create(one);
    steps.add("again", Arrays.asList(again.getHttpStatusCode(), again.getStatus().getReason()));
    String body = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"dynamic\"},\"data\":{\"a\":\"1\"}}";
    var options = new io.kubernetes.client.util.generic.options.PatchOptions();
    options.setFieldManager("official");
    options.setForce(true);
    var applied = maps.patch(namespace, "dynamic", V1Patch.PATCH_FORMAT_APPLY_YAML, new V1Patch(body), options);
    steps.add("applied", String.valueOf(applied.getObject().getRaw().get("data")));
    var merged = maps.patch(namespace, "dynamic", V1Patch.PATCH_FORMAT_JSON_MERGE_PATCH, new V1Patch("{\"data\":{\"b\":\"2\"}}"));
    steps.add("merged", String.valueOf(merged.getObject().getRaw().get("data")));
    steps.add("missing", maps.get(namespace, "nosuch").getHttpStatusCode());
    steps.add("deleted", maps.delete(namespace, "dynamic").isSuccess());
    Discovery discovery = new Discovery(client);
    steps.add("found", discovery.findAll().stream()
        .filter(each -> each.getResourcePlural().equals("deployments"))
        .map(each -> each.getGroup() + "/" + each.getPreferredVersion() + " " + each.getKind())
        .sorted().toList());
  }

  private static void elected(ApiClient client, String namespace) throws Exception {
    List<String> told = new CopyOnWriteArrayList<>();
    LeaseLock lock = new LeaseLock(namespace, "official", "one", client);
    LeaderElector elector = new LeaderElector(
        new LeaderElectionConfig(lock, Duration.ofSeconds(4), Duration.ofSeconds(3), Duration.ofMillis(500)));
    Thread thread = new Thread(() -> elector.run(() -> told.add("leads"), () -> told.add("stops")));
    thread.start();
    steps.eventually("it leads", () -> told.contains("leads"));
    steps.add("holder", new CoordinationV1Api(client).readNamespacedLease("official", namespace).execute().getSpec().getHolderIdentity());
    elector.close();
    steps.eventually("it stops", () -> told.contains("stops"));
    steps.add("told", new ArrayList<>(told));
  }
}
