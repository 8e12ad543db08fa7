import kafka.Kafka;
import kafka.tools.StorageTool;

/** Formats the storage if it is new, and runs one Kafka node: KafkaNode FOLDER PROPERTIES_FILE. */
public final class KafkaNode {
    /** Any 16 bytes in base64url. Must not begin with '-', which the tool would read as an option. */
    private static final String CLUSTER_ID = System.getProperty("cluster.id", "Y29tbWlzc2lvbi1ub2RlMQ");

    public static void main(String[] args) {
        Lifeline.hold(args[0]);
        String[] format = {"format", "--ignore-formatted", "--cluster-id", CLUSTER_ID, "--config", args[1]};
        int failed = StorageTool.execute(format, System.out);
        if (failed != 0) System.exit(failed);
        Kafka.main(new String[] {args[1]});
    }
}
