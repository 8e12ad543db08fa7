import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;

import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.node.InternalSettingsPreparer;
import org.elasticsearch.node.Node;
import org.elasticsearch.plugins.PluginsLoader;

/** Runs one Elasticsearch node: ElasticsearchNode FOLDER HOME CONFIG_FOLDER [setting=value ...]. */
public final class ElasticsearchNode {
    public static void main(String[] args) throws Exception {
        Lifeline.hold(args[0]);
        Path home = Path.of(args[1]);
        Settings.Builder settings = Settings.builder().put("path.home", home.toString());
        for (int i = 3; i < args.length; i++) {
            String[] setting = args[i].split("=", 2);
            settings.put(setting[0], setting[1]);
        }
        Node node = assemble(home, Path.of(args[2]), settings.build());
        Runtime.getRuntime().addShutdownHook(new Thread(() -> close(node), "close"));
        node.start();
        // The threads of the node are daemons: without this line the process would end.
        Thread.currentThread().join();
    }

    private static Node assemble(Path home, Path config, Settings settings) throws Exception {
        // Must be first: other classes get their loggers while they are loaded.
        LogConfigurator.configureESLogging();
        LogConfigurator.registerErrorListener();
        Environment environment = InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), config, () -> "node");
        Files.createDirectories(environment.logsDir());
        LogConfigurator.setNodeName(Node.NODE_NAME_SETTING.get(environment.settings()));
        LogConfigurator.configure(environment, true);
        var modules = PluginsLoader.loadModulesBundles(home.resolve("modules"), false);
        return new Node(environment, PluginsLoader.createPluginsLoader(modules, Set.of(), Map.of()));
    }

    private static void close(Node node) {
        try {
            node.prepareForClose();
            node.close();
            node.awaitClose(10, TimeUnit.SECONDS);
        } catch (Exception failed) {
            failed.printStackTrace();
        }
    }
}
