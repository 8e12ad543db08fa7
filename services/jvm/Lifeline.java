import java.io.IOException;
import java.io.InputStream;

/**
 * Ends this process and deletes its folder when the starting process ends, however that ends (also by SIGKILL).
 * Standard input is a pipe from the starter, and ends with the starter.
 */
final class Lifeline {
    private Lifeline() {}

    static void hold(String folder) {
        Thread watcher = new Thread(() -> {
            waitForEnd(System.in);
            letGo(folder);
        }, "lifeline");
        watcher.setDaemon(true);
        watcher.start();
    }

    private static void waitForEnd(InputStream pipe) {
        try {
            while (pipe.read() >= 0) {
                // The starter sends nothing: only the end of the pipe matters.
            }
        } catch (IOException broken) {
            // A broken pipe means that the starter is gone.
        }
    }

    /** A shell deletes the folder once this process has ended: before, its threads would write into it again. */
    private static void letGo(String folder) {
        try {
            new ProcessBuilder("/bin/sh", "-c", "kill -KILL \"$0\"; rm -rf \"$1\" || { sleep 1; rm -rf \"$1\"; }",
                Long.toString(ProcessHandle.current().pid()), folder)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start()
                .waitFor();
        } catch (IOException | InterruptedException failed) {
            failed.printStackTrace();
        }
        Runtime.getRuntime().halt(1);
    }
}
