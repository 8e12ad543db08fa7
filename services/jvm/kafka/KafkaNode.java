import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import kafka.Kafka;
import kafka.tools.StorageTool;

/**
 * Formats the storage if it is new, and runs one Kafka node: KafkaNode FOLDER PROPERTIES_FILE [FORMAT_FILE]. The format
 * file has more options for the format, one a line: they may hold passwords, which a command line would show.
 */
public final class KafkaNode {
    /** Any 16 bytes in base64url. Must not begin with '-', which the tool would read as an option. */
    private static final String CLUSTER_ID = System.getProperty("cluster.id", "Y29tbWlzc2lvbi1ub2RlMQ");

    public static void main(String[] args) throws IOException {
        Lifeline.hold(args[0]);
        List<String> format = new ArrayList<>(
            List.of("format", "--ignore-formatted", "--cluster-id", CLUSTER_ID, "--config", args[1]));
        if (args.length > 2) format.addAll(Files.readAllLines(Path.of(args[2])));
        int failed = StorageTool.execute(format.toArray(String[]::new), System.out);
        if (failed != 0) System.exit(failed);
        Kafka.main(new String[] {args[1]});
    }
}
